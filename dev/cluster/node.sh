# Sourced after env.sh: a node is a network and a mount namespace, held open by one sleeping process (its anchor), and a
# cgroup of its name in every hierarchy. Every process of the node, containers included, is in that cgroup: so `down`
# finds them all whatever crashed before, and the namespaces go with the last of them, links and mounts with those.

cgroup_hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts; }

make_cgroups() {
    local hierarchy dir file
    for hierarchy in $(cgroup_hierarchies); do
        for dir in "$hierarchy/$(node_name "$1")" "$hierarchy/$(node_name "$1")/system"; do
            mkdir -p "$dir"
            for file in cpuset.cpus cpuset.mems; do    # cgroup v1: empty until copied, and nothing can run in it
                [ ! -w "$dir/$file" ] || [ -s "$dir/cgroup.subtree_control" ] || cat "${dir%/*}/$file" >"$dir/$file"
            done
        done
    done
}

join_cgroups() {
    local hierarchy
    for hierarchy in $(cgroup_hierarchies); do
        echo "$BASHPID" >"$hierarchy/$(node_name "$1")/system/cgroup.procs"
    done
}

node_processes() {
    local hierarchy
    for hierarchy in $(cgroup_hierarchies); do
        find "$hierarchy/$(node_name "$1")" -name cgroup.procs -exec cat {} + 2>/dev/null
    done | sort -un | grep -vx 0
}

# alive NODE PROGRAM: is the recorded process there, and the node's (a number may have been given to another since)?
alive() {
    local pid
    pid=$(cat "$state/run/$2-$1.pid" 2>/dev/null) && grep -q ":/$(node_name "$1")/system$" "/proc/$pid/cgroup" 2>/dev/null
}

# spawn NODE PROGRAM COMMAND…: runs it detached in the node's cgroup and records its pid.
spawn() {
    local i=$1 program=$2
    shift 2
    (
        join_cgroups "$i"
        exec setsid "$@" </dev/null >>"$state/log/$program-$i.log" 2>&1 9>&-
    ) &
    echo $! >"$state/run/$program-$i.pid"
}

in_node() {
    local i=$1
    shift
    nsenter --target "$(cat "$state/run/anchor-$i.pid")" --net --mount -- "$@"
}

# start NODE PROGRAM COMMAND…: spawn inside the node's namespaces, unless it is running.
# Not `ip netns exec`: that mounts another /sys, without the cgroups.
start() {
    local i=$1 program=$2
    shift 2
    alive "$i" "$program" || spawn "$i" "$program" \
        nsenter --target "$(cat "$state/run/anchor-$i.pid")" --net --mount -- "$@"
}

# wait_until SECONDS WHAT COMMAND…
wait_until() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || fail "gave up waiting for $what (logs: $state/log)"
        sleep 0.2
    done
}

remove_node() {
    local i=$1 hierarchy deadline=$((SECONDS + 20)) processes
    while processes=$(node_processes "$i"); do
        [ $SECONDS -lt $deadline ] || fail "these do not die: $processes"
        xargs kill -KILL <<<"$processes" 2>/dev/null || true
        sleep 0.1
    done
    for hierarchy in $(cgroup_hierarchies); do
        [ ! -d "$hierarchy/$(node_name "$i")" ] || find "$hierarchy/$(node_name "$i")" -depth -type d -exec rmdir {} +
    done
    ip link delete "$(node_name "$i")" 2>/dev/null || true
}

remove_nodes() {
    local i
    for i in "${nodes[@]}"; do remove_node "$i"; done
    ip link delete "$name" 2>/dev/null || true
    if [ -e "$state" ]; then
        [ -e "$state/$marker" ] || fail "$state is not a cluster's directory; it stays"
        rm -rf --one-file-system "$state"
    fi
}
marker=.paceline-cluster
