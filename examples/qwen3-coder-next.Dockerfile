# The engine of qwen3-coder-next.yaml: SGLang 0.5.6 as github.com/tails-mpt/sglang has it.
#
#   docker build --tag REGISTRY/sglang:0.5.6-tails-mpt - < examples/qwen3-coder-next.Dockerfile
#   docker push REGISTRY/sglang:0.5.6-tails-mpt
#
# Never built by us: there was no registry to pull from. What it rests on was read in the two repositories: the image of
# 0.5.6 has its SGLang installed in place from a clone (docker/Dockerfile at v0.5.6, line 131), and the commit below is
# v0.5.6 and six more that change seven Python files, no dependency and nothing that is compiled.
#
# Not a later commit of the fork: from April 2026 on it is merged with what became SGLang 0.5.10, speaks other flags and
# needs other kernels than this image has.
FROM lmsysorg/sglang:v0.5.6

ARG FORK=https://github.com/tails-mpt/sglang
# "feat: add EAGLE3 support for Qwen3NextForCausalLM"
ARG COMMIT=db727c031d190a044cb025413ee8e8c0c7b881a7

WORKDIR /sgl-workspace/sglang
RUN git fetch --depth 1 "$FORK" "$COMMIT" && git checkout --force --detach FETCH_HEAD \
    && test "$(git rev-parse HEAD)" = "$COMMIT" \
    && test "$(python3 -c 'from sglang.version import __version__; print(__version__)')" = 0.5.6 \
    && grep -q set_eagle3_layers_to_capture python/sglang/srt/models/qwen3_next.py
