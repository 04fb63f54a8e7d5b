# Sourced after env.sh: a node is a network and a mount namespace, held open by one sleeping process (its anchor), and a
# cgroup of its name in every hierarchy. Every process of the node, containers included, is in that cgroup: so `down`
# finds them all whatever crashed before, and the namespaces go with the last of them, links and mounts with those.

cgroup_hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts; }

make_cgroups() {
    local hierarchy dir
    for hierarchy in $(cgroup_hierarchies); do
        for dir in "$hierarchy/$(node_name "$1")" "$hierarchy/$(node_name "$1")/system"; do
            mkdir -p "$dir"
            [ -e "$dir/cgroup.controllers" ] || [ ! -e "$dir/cpuset.cpus" ] || {    # version 1: empty, and nothing can run
                cat "${dir%/*}/cpuset.cpus" >"$dir/cpuset.cpus"
                cat "${dir%/*}/cpuset.mems" >"$dir/cpuset.mems"
            }
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
        # Containers' cgroups vanish while they are read.
        find "$hierarchy/$(node_name "$1")" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done | sort -un
}

# alive NODE PROGRAM: is the recorded process there, no zombie, and the node's (its number may be another's by now)?
alive() {
    local proc
    proc=/proc/$(cat "$state/run/$2-$1.pid" 2>/dev/null) || return 1
    grep -qs ":/$(node_name "$1")/system$" "$proc/cgroup" && ! grep -qs '^State:.Z' "$proc/status"
}

# spawn NODE PROGRAM COMMAND…: runs it detached in the node's cgroup and records its pid.
spawn() {
    local i=$1 program=$2
    shift 2
    (
        join_cgroups "$i"
        cd /
        ulimit -n "$(ulimit -Hn)"
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
        sleep 0.1
    done
}

kill_processes() {
    local processes
    processes=$(node_processes "$1")
    [ -z "$processes" ] || { xargs kill -KILL <<<"$processes" || true; return 1; }
}

remove_cgroups() {
    local hierarchy
    for hierarchy in $(cgroup_hierarchies); do
        [ ! -d "$hierarchy/$(node_name "$1")" ] || find "$hierarchy/$(node_name "$1")" -depth -type d -exec rmdir {} +
    done
}

remove_node() {
    wait_until 20 "the processes of node $1 to die" kill_processes "$1"
    wait_until 20 "the cgroups of node $1 to empty" remove_cgroups "$1"
    ip link delete "$(node_name "$1")" 2>/dev/null || true    # its other end went with the namespace
}

remove_nodes() {
    local i
    for i in "${nodes[@]}"; do remove_node "$i"; done
    ip link delete "$name" 2>/dev/null || true
    remove_state
}

remove_state() {
    [ -e "$state" ] || return 0
    [ -e "$marker" ] || fail "$state is not a cluster's directory; it stays"
    rm -rf --one-file-system "$state"
}
