# Sourced by every script here. What the workflow and a dry run do differently is said by these variables, and by nothing
# else:
#   REGISTRY    where image and chart go: REGISTRY/paceline and REGISTRY/charts/paceline
#   SOURCE      the address of the repository, for labels and Artifact Hub; empty: none is said
#   BASE        the base image, where it is not the Dockerfile's
#   COSIGN_SIGN, COSIGN_VERIFY   options for a key; without them it is keyless
#   PLAIN_HTTP  not empty: REGISTRY speaks http
#   OUT         where digests, SBOMs and the chart are written
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/env.sh"
if [ -n "${GITHUB_REPOSITORY:-}" ]; then
    owner=${GITHUB_REPOSITORY_OWNER,,}    # registries take no capitals
    : "${REGISTRY:=ghcr.io/$owner}" "${SOURCE:=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY}"
fi
registry=${REGISTRY:?say REGISTRY: where image and chart go, such as registry.example.com/team}
source=${SOURCE:-}
out=${OUT:-$repository/build/release}
platforms=(linux/amd64 linux/arm64)
version=$(cd "$repository" && python3 -m dev.release version)
image=$registry/paceline
chart=$registry/charts/paceline
tools=$cache/release/bin
plain=${PLAIN_HTTP:+yes}
read -ra sign_options <<<"${COSIGN_SIGN:---yes}"
read -ra verify_options <<<"${COSIGN_VERIFY:---certificate-oidc-issuer https://token.actions.githubusercontent.com \
    --certificate-identity $source/.github/workflows/release.yml@refs/tags/v$version}"
mkdir -p "$out"

# digest_of IMAGE|CHART: as pushed, sha256:…
digest_of() { cat "$out/$1.digest"; }
# The platforms of the pushed image: `linux/amd64 sha256:…` a line.
images() { "$tools/crane" manifest "$image@$(digest_of image)" | python3 -m dev.release platforms; }
