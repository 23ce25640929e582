# One image for every role; the role is the command. docker-compose.yml has them all.
# Versions and hashes of all packages are those of requirements-image.lock (`make lock`).

ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements-image.lock requirements-build.lock ./
RUN python -m venv /opt/orchestrator \
 && /opt/orchestrator/bin/pip install --quiet --require-hashes -r requirements-image.lock \
 && python -m venv /tools \
 && /tools/bin/pip install --quiet --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY orchestrator orchestrator
COPY api api
COPY tasks tasks
COPY alembic alembic
COPY packages/orchestrator-console packages/orchestrator-console
RUN /tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . ./packages/orchestrator-console \
 && /opt/orchestrator/bin/pip install --quiet --no-deps /wheels/*.whl \
 && /opt/orchestrator/bin/pip uninstall --quiet --yes pip

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="stack-orchestrator" org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/orchestrator/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN groupadd --gid 10001 orchestrator \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin orchestrator
COPY --from=build /opt/orchestrator /opt/orchestrator
USER 10001:10001
WORKDIR /tmp
EXPOSE 8004
CMD ["orchestrator", "--help"]
