# Sourced by `up` where Docker is usable: the same cluster by kind.

kind_up() {
    local i=0 node
    mkdir -p "$state/volumes"
    touch "$state/$marker"
    if ! "$bin/kind" get clusters 2>/dev/null | grep -qx "$name"; then
        sed "s|VOLUMES|$state/volumes|" "$here/kind.yaml" |
            "$bin/kind" create cluster --name "$name" --kubeconfig "$kubeconfig" --config - --wait 180s
    fi
    kubectl taint node --all node-role.kubernetes.io/control-plane- >/dev/null 2>&1 || true    # it carries GPUs as well
    for node in $(kubectl get node -o name); do
        gpu_labels $i | tr , '\n' | xargs "$bin/kubectl" --kubeconfig "$kubeconfig" label --overwrite "$node" >/dev/null
        i=$((i + 1))
    done
    kubectl annotate --overwrite storageclass standard storageclass.kubernetes.io/is-default-class=false >/dev/null
    "$here/load-image" localhost/gpu-device-plugin:dev
}
