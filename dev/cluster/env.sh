# Sourced by every script here: the names, addresses and directories of one cluster, and the few functions all need.
# Two clusters can stand side by side if these three differ.
name=${PACELINE_CLUSTER_NAME:-paceline}             # bridge, links and cgroups; at most 11 characters
net=${PACELINE_NET:-10.245}                         # the /16 that everything below is cut from
state=${PACELINE_STATE:-/var/tmp/$name-cluster}     # everything that `down` deletes
cache=${PACELINE_CACHE:-$HOME/.cache/paceline}      # binaries and images: kept

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
bin=$cache/bin
images=$cache/images
kubeconfig=$state/kubeconfig
marker=$state/.paceline-cluster                     # makes `state` a cluster's directory; says which: own or kind

nodes=(0 1)
read -ra gpu_products <<<"${PACELINE_GPU_PRODUCTS:-NVIDIA-H200 NVIDIA-H200}"    # one per node
host_ip=$net.0.1
services=$net.96.0/20
pods=$net.16.0/20
api_service_ip=$net.96.1                            # the first address of `services`: Kubernetes takes it for itself
dns_ip=$net.96.10
node_name() { echo "$name-$1"; }
node_ip() { echo "$net.0.1$1"; }
node_pods() { echo "$net.$((16 + $1)).0/24"; }
node_dir() { echo "$state/node-$1"; }

# The archive of an image, named after it: localhost/paceline:dev → paceline.tar.
image_archive() { local n=${1#localhost/}; echo "$images/${n%%:*}.tar"; }

say() { echo "${0##*/}: $*" >&2; }
fail() { say "$*"; exit 1; }
docker_usable() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }
# A cluster stays what it was made as, whatever is asked for now and whether Docker answers or not.
cluster() {
    local made=
    [ ! -e "$marker" ] || { made=$(cat "$marker"); made=${made:-own}; }    # empty: made before there was a choice
    echo "${made:-${CLUSTER:-own}}"
}
by_kind() { [ "$(cluster)" = kind ]; }
kubectl() { "$bin/kubectl" --kubeconfig "$kubeconfig" "$@"; }
