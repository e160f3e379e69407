-module(witness_options_memory).
-moduledoc """
How much memory the node may use: that of the machine, or less if a control group
limits it.
""".

-export([available_bytes/0]).

-define(LIMIT_FILES, ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]).

%% Assumed if nothing can be read.
-define(ASSUMED_BYTES, 1 bsl 30).

-doc "In bytes.".
-spec available_bytes() -> pos_integer().
available_bytes() -> lists:min([machine_bytes() | lists:append([limit_bytes(F) || F <- ?LIMIT_FILES])]).

machine_bytes() ->
    case file:read_file("/proc/meminfo") of
        {ok, Text} ->
            case re:run(Text, "MemTotal: *([0-9]+) kB", [{capture, all_but_first, list}]) of
                {match, [KiB]} -> list_to_integer(KiB) * 1024;
                nomatch -> ?ASSUMED_BYTES
            end;
        {error, _} -> ?ASSUMED_BYTES
    end.

limit_bytes(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case string:to_integer(Text) of
                {Bytes, _} when is_integer(Bytes), Bytes > 0 -> [Bytes];
                _ -> []
            end;
        {error, _} -> []
    end.
