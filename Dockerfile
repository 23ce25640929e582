# syntax=docker/dockerfile:1
# One image for every role; the role is the command: docker-compose.yml has them all.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /tools && /tools/bin/pip install --require-hashes -r requirements.lock
COPY orchestrator orchestrator
COPY api api
COPY tasks tasks
COPY alembic alembic
# The lock holds the tools of development too. The wheel says what running needs, and the lock which version and hash.
RUN /tools/bin/python -m build --wheel --no-isolation --outdir /wheels \
 && /tools/bin/uv export --quiet --help >/dev/null \
 && /tools/bin/uv pip compile --quiet --extra flower --generate-hashes --no-emit-index-url --constraints requirements.lock \
        --output-file runtime.txt pyproject.toml \
 && python -m venv /opt/orchestrator \
 && /opt/orchestrator/bin/pip install --require-hashes -r runtime.txt \
 && /opt/orchestrator/bin/pip install --no-deps /wheels/*.whl

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
