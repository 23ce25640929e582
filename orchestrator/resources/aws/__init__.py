"""Resource types of CloudFormation on OpenStack's services. Start with `mapped_type.MappedType`.

mapped_type.py              types whose resources belong to an OpenStack type, with other property names
tags.py                     the property `Tags`
instance.py                 AWS::EC2::Instance
instance_properties.py      its properties
instance_volumes.py         its volumes
security_group.py           AWS::EC2::SecurityGroup
volume.py                   AWS::EC2::Volume, AWS::EC2::VolumeAttachment
elastic_ip.py               AWS::EC2::EIP
elastic_ip_association.py   AWS::EC2::EIPAssociation
vpc.py                      AWS::EC2::VPC: a network and a router of the same name
subnet.py                   AWS::EC2::Subnet
network_interface.py        AWS::EC2::NetworkInterface
internet_gateway.py         AWS::EC2::InternetGateway, AWS::EC2::VPCGatewayAttachment
route_table.py              AWS::EC2::RouteTable
route_table_association.py  AWS::EC2::SubnetRouteTableAssociation
elb/                        AWS::ElasticLoadBalancing::LoadBalancer, on Octavia
cloudwatch/                 AWS::CloudWatch::Alarm, on Aodh
s3/                         AWS::S3::Bucket, on Swift
"""
