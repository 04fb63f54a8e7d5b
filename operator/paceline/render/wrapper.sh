# PID 1 of a round's server container: runs one arm's server after another, at the client's word. POSIX sh.
#
# Below PACELINE_CTL (/ctl) are two directories. Each is written by one side and only read by the other: `in` by the
# client, `out` by this script and, as they run in our container, by the servers. A file is written under another name
# and renamed, so none is ever seen half. N counts servers, or looks, from 1.
#
#   in, by the client                                 out, by this script
#   heartbeat  changes at least every few seconds     gpus     ids, once: NVIDIA_VISIBLE_DEVICES, or what the
#                                                              driver says where that names none
#   start.N    a shell script that execs a server     model    what the driver calls the GPUs, once
#   stop.N     end that server                        driver   the GPU driver's version, once, where nvidia-smi is
#                                                     seals    a secret a line: the last of these, before any server
#                                                     pid      of the server, which leads its own session and group
#   look.N     ask the driver how the GPUs are        clocks.N its answer: the fields' names, then a line a GPU
#   done       nothing more is wanted                 log      of the server, whole; it goes to our stdout too
#                                                     alive    its time says that we live
#                                                     exit.N   seal, status, and "stopped" if it ended at our word;
#                                                              written once all it started is gone, and all it has
#                                                              put into out, and the GPUs' memory is free
#
# The client reads the seals before it starts a server, and they are removed then: the N-th opens the N-th exit. No
# server knows it, so none can say that it has ended while it goes on and answers for the next one. The client looks
# while nothing is measured, and only where driver is.
#
# PACELINE_DEVICES, where it is set, are the only GPUs that the driver is asked about.
#
# We exit 0 after done; 70 if the heartbeat stands still for PACELINE_HEARTBEAT_SECONDS (30) or does not begin within
# PACELINE_CLIENT_SECONDS (300); 71 if a process of a server cannot be ended; 143 on SIGTERM. A server that still runs
# is ended first, every time.
set -u
in=${PACELINE_CTL:-/ctl}/in out=${PACELINE_CTL:-/ctl}/out
patience=${PACELINE_CLIENT_SECONDS:-300} # until the first heartbeat; then the other
grace=${PACELINE_GRACE_SECONDS:-5}       # from SIGTERM to SIGKILL
unload=${PACELINE_GPU_SECONDS:-120}      # at most, for the driver to free what a killed server held
child='' over='' beat='' turn=1 look=1

tell() { rm -rf "$out/.$1" && printf '%s\n' "$2" >"$out/.$1" && mv -f "$out/.$1" "$out/$1"; }
now() { read -r up _ </proc/uptime && echo "${up%%.*}"; } # of the machine, so that no clock can be set
nap() { # alive without a process, for a server is being measured, and by no name, which a server could give to a pipe
  echo >&3
  sleep 0.2 2>/dev/null || sleep 1
}
smi() {
  timeout 10 nvidia-smi ${PACELINE_DEVICES:+-i "$PACELINE_DEVICES"} --query-gpu="$1" --format=csv,noheader,nounits
} 2>/dev/null
gpus() { smi "$1" | sort -n | tail -n 1; }
memory() { # MiB used on the fullest GPU; nothing where that is unknown ("[N/A]", "[Not Supported]")
  mib=$(gpus memory.used)
  case $mib in *[!0-9]*) ;; *) echo "$mib" ;; esac
}

wanted=uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu
counted=sw_power_cap,sync_boost,sw_thermal_slowdown,hw_thermal_slowdown,hw_power_brake_slowdown
fields() { # the most that this driver can be asked: counters came late, and the reasons had another name
  every=$wanted,clocks_event_reasons.active,$(echo "$counted" | sed 's/[^,]*/clocks_event_reasons_counters.&/g')
  for one in "$every" "$wanted,clocks_event_reasons.active" "$wanted,clocks_throttle_reasons.active" "$wanted"; do
    found=$(smi "$one") && case $found in *,*) echo "$one" && return ;; esac
  done
}

members() { # processes that are more than zombies: of the server's session, or with "all" every one but ourselves
  all=${1:-}
  read -r me _ </proc/self/stat # we are asked in $(…), which is a process
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    who=${stat#/proc/} who=${who%/stat}
    # shellcheck disable=SC2086 # to be split: state, parent, group, session and more
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    if [ "$who" = "$me" ] || [ "$who" = $$ ]; then continue; fi
    if [ -n "$all" ] || [ "$who" = "$child" ] || [ "$3" = "$child" ] || [ "$4" = "$child" ]; then echo "$who"; fi
  done
}

begin() {
  rm -rf "$out/pipe" "$out/log" "$out/seals"
  mkfifo "$out/pipe"
  tee "$out/log" <"$out/pipe" 3>&- &
  logger=$!
  # setsid execs: we start it in the background, so it leads no group yet. Its pid is the server's.
  if command -v setsid >/dev/null; then
    setsid sh "$in/start.$turn" >"$out/pipe" 2>&1 3>&- &
  else
    sh "$in/start.$turn" >"$out/pipe" 2>&1 3>&- &
  fi
  child=$!
  tell pid "$child"
}

end() { # with signal $1; wait at most $2 seconds for the last of them to go
  deadline=$(($(now) + $2)) left=$(members)
  # shellcheck disable=SC2086 # one word a process; the group too, for what forks just now
  if [ -n "$left" ]; then kill -s "$1" -- "-$child" $left 2>/dev/null; fi
  while [ -n "$(members)" ] && [ "$(now)" -lt "$deadline" ]; do nap; done
}

sweep() { # whoever has left the session, too. Of a container's first process -1 is all that is in the container
  if [ $$ != 1 ]; then return; fi
  kill -s KILL -- -1 2>/dev/null
  deadline=$(($(now) + grace))
  while [ -n "$(members all)" ] && [ "$(now)" -lt "$deadline" ]; do nap; done
  if [ -n "$(members all)" ]; then
    echo "paceline: a process of this arm cannot be ended, so no other arm is measured beside it" >&2
    over=71
  fi
}

clean() { # what the server has put into out, but for the log: the next arm's exit is not its to write
  for one in "$out"/* "$out"/.[!.]* "$out"/..?*; do
    case ${one##*/} in gpus | model | driver | alive | log) ;; *) rm -rf "$one" ;; esac
  done
}

finish() { # $1: "stopped", or nothing if the server ended by itself
  end TERM "$grace"
  end KILL "$grace"
  if kill -0 "$child" 2>/dev/null && [ -n "$(members)" ]; then status=137; else wait "$child" && status=0 || status=$?; fi
  nap # for the last lines: whoever left the session may hold the pipe open for ever
  kill "$logger" 2>/dev/null
  wait "$logger" 2>/dev/null
  sweep
  deadline=$(($(now) + unload))
  while [ -n "$used" ] && [ -z "$over" ] && [ "$(now)" -lt "$deadline" ]; do
    left=$(memory)
    if [ -n "$left" ] && [ "$left" -le $((used + 1024)) ]; then break; fi
    nap
  done
  child=''
  clean
  if [ "$over" != 71 ]; then tell "exit.$turn" "${seals%%"$line_end"*} $status${1:+ $1}"; fi
  seals=${seals#*"$line_end"} turn=$((turn + 1))
}

trap 'over=143' TERM INT
line_end='
'
exec 3>"$out/alive"
ids=${NVIDIA_VISIBLE_DEVICES:-}
case $ids in '' | all | void | none) # a device plugin that hands them out in another way (CDI)
  ids=$(smi uuid | tr '\n' ',') ids=${ids%,} ;;
esac
tell gpus "$ids"
driver='' used='' asked=''
if command -v nvidia-smi >/dev/null; then driver=$(gpus driver_version) used=$(memory); fi
if [ -n "$driver" ]; then
  asked=$(fields)
  tell model "$(gpus name)"
  tell driver "$driver"
fi
seals=$(head -c 1600 /dev/urandom | od -An -v -tx1 | tr -d ' ') # a hundred
tell seals "$seals"
since=$(now)
while [ -z "$over" ]; do
  if [ -e "$in/look.$look" ]; then
    tell "clocks.$look" "$asked
$(smi "$asked")"
    look=$((look + 1))
  fi
  if [ -e "$in/done" ]; then
    over=0
  elif [ -n "$child" ] && ! kill -0 "$child" 2>/dev/null; then
    finish
  elif [ -n "$child" ] && [ -e "$in/stop.$turn" ]; then
    finish stopped
  elif [ -z "$child" ] && [ -e "$in/start.$turn" ]; then
    begin
  fi
  seen=$(cat "$in/heartbeat" 2>/dev/null)
  if [ "$seen" != "$beat" ]; then
    beat=$seen since=$(now) patience=${PACELINE_HEARTBEAT_SECONDS:-30}
  elif [ $(($(now) - since)) -ge "$patience" ]; then
    echo "paceline: no sign of the client for $patience s" >&2
    over=${over:-70}
  fi
  nap
done
if [ -n "$child" ]; then finish stopped; fi
exit "$over"
