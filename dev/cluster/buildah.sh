# Sourced after env.sh by the scripts that make images, one at a time. Storage of its own under the cache; a mount
# namespace of its own for every call, or its overlay mounts would stay. Chroot isolation needs no container runtime.
mkdir -p "$images"
exec 8>"$images/.lock"
flock 8
buildah() {
    unshare --mount --propagation private -- \
        buildah --root "$cache/buildah" --runroot "$cache/buildah-run" --storage-driver overlay "$@" 8>&-
}

# What an image in the cache was made from, or nothing.
image_key() { [ ! -s "$(image_archive "$1")" ] || cat "$(image_archive "$1").key" 2>/dev/null || true; }

# in_storage NAME: puts an image of the cache into buildah's storage, for a build to start from.
in_storage() { buildah inspect --type image "$1" >/dev/null 2>&1 || buildah pull --quiet "docker-archive:$(image_archive "$1")" >/dev/null; }

# bud IMAGE CONTEXT [options]: a build whose output is shown only if it fails.
bud() {
    local image=$1 context=$2 log
    shift 2
    log=$(image_archive "$image").log
    buildah bud --isolation chroot --pull-never --tag "$image" "$@" "$context" >"$log" 2>&1 ||
        { tail -n 30 "$log" >&2; fail "$image could not be built (all of it: $log)"; }
}

# build_image IMAGE KEY CONTEXT [options]: builds, and writes archive and key.
build_image() {
    local image=$1 key=$2 context=$3 archive started=$SECONDS
    shift 3
    archive=$(image_archive "$image")
    rm -f "$archive.key"
    bud "$image" "$context" "$@"
    rm -f "$archive.new"
    buildah push --quiet "$image" "docker-archive:$archive.new:$image"
    mv "$archive.new" "$archive"
    echo "$key" >"$archive.key"
    say "$image built in $((SECONDS - started)) s"
}

# pip inside a build finds packages as pip outside does: by its configuration, its PIP_ variables, and what they name.
# Sets `options`, for `bud`.
pip_options() {
    local file variable
    options=(--layers --build-arg "BASE=localhost/paceline-base:dev")
    mount() { [ ! -e "$1" ] || options+=(--volume "$1:${2:-$1}:ro"); }
    mount /etc/ssl/certs/ca-certificates.crt
    for file in "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" /etc/pip.conf; do
        [ ! -f "$file" ] || { mount "$file" /etc/pip.conf; break; }
    done
    for variable in "${!PIP_@}"; do
        options+=(--env "$variable=${!variable}" --unsetenv "$variable")
        [[ ${!variable} != /* || ${!variable} == /etc/ssl/* ]] || mount "${!variable}"
    done
}

# debian_mirror SUITE: sets `mirror`, the one that this machine itself installs from, and its proxy.
debian_mirror() {
    local sites proxy=
    sites=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Component: main')
    mirror=$({ grep " $1\$" <<<"$sites" || echo "$sites"; } | awk 'NR == 1 {print $1}')    # or what has another suite
    [ -n "$mirror" ] || fail "apt has no sources to take a mirror from (run apt-get update once)"
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "$proxy" ] || export http_proxy=$proxy https_proxy=$proxy
}
