# One image for operator, gateway, emulator and mock engine. Build it with `make image`.
ARG PYTHON=3.11.15-slim-bookworm

FROM python:${PYTHON} AS build
# mypyc makes C of the hot modules; 0 leaves them Python, and the build a minute and a half shorter.
ARG COMPILE=1
# Debian keeps no earlier versions that could be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The second is for pip from 25.3 on, which holds the tools of a build to constraints of their own.
ENV PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 MODELSERVE_COMPILE=${COMPILE}
RUN python -m pip wheel --wheel-dir /wheels '.[emulator]'
RUN python -m venv /opt/modelserve \
 && /opt/modelserve/bin/python -m pip install --no-index --find-links /wheels 'modelserve[emulator]' \
 && /opt/modelserve/bin/python -m pip uninstall --yes pip setuptools

FROM python:${PYTHON}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="ModelServe" \
      org.opencontainers.image.description="Serves and scales large language models on Kubernetes, on emulated GPU nodes where there are no real ones" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/modelserve /opt/modelserve
# Nothing is written but to /tmp, so any user will do, and a root file system that is read-only.
ENV PATH=/opt/modelserve/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 65532:65532
CMD ["modelserve", "--help"]
