# Sourced after env.sh and node.sh: the same cluster by kind, in Docker. PACELINE_KIND_IMAGE is the nodes' image, if not
# the one of kind.yaml; `local` is the one that kind/image-node makes, for where no registry answers.

need_docker() {
    docker_usable || fail "this cluster is kind's, and Docker does not answer: docker info says why"
}

kind_nodes() { "$bin/kind" get nodes --quiet --name "$name" || fail "kind could not list its nodes"; }

kind_configuration() {
    sed "s|VOLUMES|$state/volumes|g; s|PODS|$pods|; s|SERVICES|$services|" "$here/kind.yaml"
    # The image made here has no CoreDNS that understands kubeadm's Corefile: the own cluster's takes its place.
    [ "${PACELINE_KIND_IMAGE:-}" != local ] || cat <<'END'
kubeadmConfigPatches: ["{kind: InitConfiguration, skipPhases: [preflight, addon/coredns]}"]
END
}

kind_create() {
    local image=${PACELINE_KIND_IMAGE:-}
    if [ "$image" = local ]; then
        "$here/kind/image-node" --load
        image=localhost/kind-node:dev
    fi
    docker network inspect kind >/dev/null 2>&1 || touch "$state/kind-network"    # not there before: `down` removes it
    kind_configuration | "$bin/kind" create cluster --name "$name" ${image:+--image "$image"} \
        --kubeconfig "$kubeconfig" --config - --wait 180s
}

kind_up() {
    local i=0 node present
    mkdir -p "$state/volumes"
    echo kind >"$marker"
    "$here/image-system" gpu-device-plugin
    present=$(kind_nodes)
    # kind writes the kubeconfig last: where it is missing, the making was interrupted.
    [ -z "$present" ] || [ -s "$kubeconfig" ] || { kind_delete; present=; }
    if [ -n "$present" ]; then
        xargs docker start <<<"$present" >/dev/null
        wait_until 60 "the API server" kubectl get --raw /readyz --request-timeout=2s
    else
        kind_create
    fi
    kubectl taint node --all node-role.kubernetes.io/control-plane- >/dev/null 2>&1 || true    # it carries GPUs as well
    for node in $(kubectl get node -o name); do
        gpu_labels $i | tr , '\n' | xargs "$bin/kubectl" --kubeconfig "$kubeconfig" label --overwrite "$node" >/dev/null
        i=$((i + 1))
    done
    kubectl annotate --overwrite storageclass standard storageclass.kubernetes.io/is-default-class=false >/dev/null
    "$here/load-image" localhost/gpu-device-plugin:dev
    if [ "${PACELINE_KIND_IMAGE:-}" = local ]; then
        "$here/load-image" localhost/coredns:dev
        start_dns
    fi
    kubectl --namespace kube-system rollout status deployment/coredns --timeout=120s >/dev/null
}

# Sends an archive to the nodes that do not have it. What a node has is written on the node, and goes with it.
kind_load() {
    local archive version node loaded present lacking
    need_docker
    present=$(kind_nodes)
    [ -n "$present" ] || fail "kind has no cluster $name"
    for archive in "$@"; do
        version=$(stat -c '%s %y' "$archive")
        loaded=/kind/loaded-$(basename "$archive")
        lacking=()
        for node in $present; do
            [ "$(docker exec "$node" cat "$loaded" 2>/dev/null)" = "$version" ] || lacking+=("$node")
        done
        [ ${#lacking[@]} != 0 ] || continue
        "$bin/kind" load image-archive "$archive" --name "$name" --nodes "$(IFS=,; echo "${lacking[*]}")"
        for node in "${lacking[@]}"; do docker exec --interactive "$node" cp /dev/stdin "$loaded" <<<"$version"; done
    done
}

kind_delete() {
    local present
    need_docker
    "$here/build" kind
    present=$(kind_nodes)
    if [ -n "$present" ]; then
        # Its own kubeconfig, or kind edits the user's. It needs the directory, if only for a lock.
        mkdir -p "$state"
        echo kind >"$marker"
        "$bin/kind" delete cluster --name "$name" --kubeconfig "$kubeconfig"
    fi
    [ ! -e "$state/kind-network" ] || docker network rm kind >/dev/null 2>&1 || true    # stays while another cluster has it
}
