# Paceline: the operator, the client of a round and the prefetch are one image, `paceline`; `sglang-emulator` stands in for
# an engine and has nothing of it but the packages that both are built on (one layer on a node).
ARG BASE=python:3.11-slim-bookworm

# This stage runs on the machine that builds, whatever it builds for: wheels of the target's architecture are unpacked, and
# nothing of it is executed, so one machine builds for all.
FROM --platform=$BUILDPLATFORM ${BASE} AS build
ARG TARGETARCH
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/venv
COPY requirements.lock /src/
RUN case "$TARGETARCH" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) exit 1 ;; esac \
 && wheels="--only-binary=:all: --implementation=cp --python-version=3.11 --platform=manylinux2014_$machine \
      --platform=manylinux_2_17_$machine --platform=manylinux_2_24_$machine --platform=manylinux_2_28_$machine \
      --platform=manylinux_2_34_$machine" \
 && /opt/pip/bin/pip install --no-cache-dir --require-hashes $wheels --target /opt/venv/lib/python3.11/site-packages \
      -r /src/requirements.lock \
 && rm -rf /opt/venv/lib/python3.11/site-packages/bin \
 && find /opt/venv -name tests -type d -prune -exec rm -rf {} + \
 && rm -rf /opt/venv/lib/python3.11/site-packages/cel_expr_python/ext \
 && cd /opt/venv/lib/python3.11/site-packages/kubernetes && find client/api client/models aio/client/api aio/client/models \
      -type f -not -name '__init__.*' -delete

FROM build AS code
COPY operator/paceline /app/paceline
RUN /opt/venv/bin/python -m compileall -q /app

# Said, because buildah 1.28 else goes on with the platform of the first stage: an arm64 image with programs of amd64.
FROM --platform=$TARGETPLATFORM ${BASE} AS paceline
COPY --from=build /opt/venv /opt/venv
COPY --from=code /app /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
USER 65532:65532
ENTRYPOINT ["python", "-m", "paceline.cli"]

FROM ${BASE} AS sglang-emulator
COPY --from=build /opt/venv /opt/venv
COPY paceline_emulator /app/paceline_emulator
COPY dev/emulator-image /opt/emulator
RUN /opt/venv/bin/python -m compileall -q /app
ENV PATH=/opt/emulator/bin:/opt/venv/bin:$PATH \
    PYTHONPATH=/app:/opt/emulator \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
USER 65532:65532
