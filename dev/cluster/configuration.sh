# Sourced after env.sh: the configuration files of one node's programs, each printed by a function of the node's number.

containerd_configuration() {
    local dir; dir=$(node_dir "$1")
    cat <<END
version = 2
root = "$dir/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]    # it would make /opt/containerd
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:dev"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE an OOM score cannot be lowered, and runc says only "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$dir/registries"    # HOST/hosts.toml; read at every pull, and missing unless a test writes one
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cni_plugins"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
END
}

cni_configuration() {
    cat <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$(node_dir "$1")/cni-addresses",
            "ranges": [[{"subnet": "$(node_pods "$1")"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
}

kubelet_configuration() {
    local dir; dir=$(node_dir "$1")
    cat <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet-$1.crt
tlsPrivateKeyFile: $pki/kubelet-$1.key
containerRuntimeEndpoint: unix://$dir/containerd.sock
clusterDNS: [$dns_ip]
clusterDomain: cluster.local
resolvConf: $state/resolv.conf
cgroupDriver: cgroupfs
# Without a root of its own each kubelet takes the other's pods for orphans and kills them.
cgroupRoot: /$(node_name "$1")
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
podLogsDir: $dir/pod-logs
volumePluginDir: $dir/volume-plugins
# A change in a device plugin reaches the node's status only with the next report.
nodeStatusUpdateFrequency: 2s
END
}

# What GPU feature discovery sets on a node with eight of one product; memory in MiB.
gpu_labels() {
    local product=${gpu_products[$1]:-${gpu_products[-1]}} memory family major
    case $product in
        NVIDIA-B200)           memory=183359 family=blackwell major=10 ;;
        NVIDIA-H200)           memory=143771 family=hopper major=9 ;;
        NVIDIA-H100-80GB-HBM3) memory=81559 family=hopper major=9 ;;
        NVIDIA-A100-SXM4-80GB) memory=81920 family=ampere major=8 ;;
        *) fail "PACELINE_GPU_PRODUCTS: labels of $product are not known here" ;;
    esac
    printf 'nvidia.com/gpu.%s,' present=true "product=$product" count=8 "memory=$memory" "family=$family" \
        "compute.major=$major" compute.minor=0 replicas=1 sharing-strategy=none
    echo nvidia.com/mig.capable=true
}
