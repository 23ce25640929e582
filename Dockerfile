# syntax=docker/dockerfile:1
# One image for every role; the role is the command. docker-compose.yml has them all.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /tools && /tools/bin/pip install --quiet --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
# The lock also holds the packages of the developers. The extras in pyproject.toml select the lines that the server needs;
# versions and hashes are those of the lock.
RUN /tools/bin/uv pip compile --quiet --no-header --no-annotate --extra flower --extra keystone \
        --constraints requirements.lock --output-file pins.txt pyproject.toml \
 && awk 'NR == FNR {wanted[$1]; next} /^[a-z0-9]/ {keep = $1 in wanted} keep' pins.txt requirements.lock > runtime.txt \
 && python -m venv /opt/orchestrator \
 && /opt/orchestrator/bin/pip install --quiet --require-hashes -r runtime.txt
COPY orchestrator orchestrator
COPY api api
COPY tasks tasks
COPY alembic alembic
RUN /tools/bin/python -m build --wheel --no-isolation --outdir /wheels \
 && /opt/orchestrator/bin/pip install --quiet --no-deps /wheels/*.whl

FROM python:3.11-slim
LABEL org.opencontainers.image.title="stack-orchestrator" org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/orchestrator/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN groupadd --gid 10001 orchestrator \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin orchestrator
COPY --from=build /opt/orchestrator /opt/orchestrator
USER 10001:10001
WORKDIR /tmp
EXPOSE 8004
CMD ["orchestrator", "--help"]
