# Sourced after env.sh by the scripts that make images. Storage of its own under the cache; the vfs driver and chroot
# isolation work where overlay mounts and user namespaces do not.
buildah() {
    command buildah --root "$cache/buildah" --runroot "$cache/buildah-run" --storage-driver vfs "$@"
}

# The archive of an image, named after it: localhost/paceline:dev → paceline.tar.
image_archive() { local n=${1#localhost/}; echo "$images/${n%%:*}.tar"; }

# What an image in the cache was made from, or nothing.
image_key() { [ ! -s "$(image_archive "$1")" ] || cat "$(image_archive "$1").key" 2>/dev/null || true; }

# build_image NAME KEY CONTEXT [buildah bud options]: builds, and writes archive and key.
build_image() {
    local image=$1 key=$2 context=$3 archive started=$SECONDS
    shift 3
    archive=$(image_archive "$image")
    mkdir -p "$images"
    rm -f "$archive" "$archive.key"
    buildah bud --quiet --isolation chroot --pull-never --tag "$image" "$@" "$context" >"$archive.log" 2>&1 ||
        { tail -n 30 "$archive.log" >&2; fail "$image could not be built (all of it: $archive.log)"; }
    buildah push --quiet "$image" "docker-archive:$archive.new:$image"
    mv "$archive.new" "$archive"
    echo "$key" >"$archive.key"
    say "$image built in $((SECONDS - started)) s"
}
