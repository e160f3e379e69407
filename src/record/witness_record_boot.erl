-module(witness_record_boot).
-moduledoc """
Boot scripts for VMs that must have certain atoms, in a certain order, before anything else makes some.

Small maps keep their keys in the order in which the VM has met the names. Large maps, and the dictionaries of processes, have an order
that depends on the number of each name. While a VM boots, it loads modules in parallel: so these orders may differ from VM to VM.

VMs of the same build have the same atoms before they read their boot script. The script starts with a list of atoms, and reading the
script makes them. Flags of the VM must not make an atom before that, unless all such VMs have the same flags.
""".

-export([folder/1, write/4, delete/0]).

-include_lib("kernel/include/file.hrl").

-define(DAY_S, 86_400).
-define(MINUTE_S, 60).

-doc "A new folder in the cache, for a script. The VM deletes it (`delete/0`).".
-spec folder(#{cache => file:filename(), _ => _}) -> {ok, file:filename()} | {error, file:posix()}.
folder(Options) ->
    Cache = witness_record_code:cache(maps:with([cache], Options)),
    Dir = filename:join(Cache, io_lib:format("boot.~s.~b", [os:getpid(), erlang:unique_integer([positive])])),
    Name = lists:flatten(Dir),
    ok = sweep(Cache),
    maybe
        ok ?= filelib:ensure_path(Name),
        ok ?= file:change_mode(Name, 8#700),
        {ok, Name}
    end.

%% Deletes folders that remain if the caller and the VM were killed while that booted. Processes of another container have other
%% identifiers.
sweep(Cache) ->
    Names = case file:list_dir(Cache) of {ok, All} -> All; {error, _} -> [] end,
    lists:foreach(fun(Dir) ->
        _ = [file:del_dir_r(Dir) || is_older(Dir, ?DAY_S) orelse is_older(Dir, ?MINUTE_S) andalso is_alone(Dir)]
    end, [filename:join(Cache, Name) || "boot." ++ _ = Name <- Names]).

is_alone(Dir) ->
    [_, Pid | _] = string:lexemes(filename:basename(Dir), ".") ++ [""],
    filelib:is_dir("/proc/self") andalso not filelib:is_dir("/proc/" ++ Pid).

is_older(Dir, Seconds) ->
    case file:read_file_info(Dir, [raw, {time, posix}]) of
        {ok, #file_info{mtime = Time}} -> erlang:system_time(second) - Time > Seconds;
        {error, _} -> false
    end.

-doc """
Writes the script into such a folder. `First`: commands right after the preloaded modules; `Last`: those at the end. The result is the
name for `-boot`.
""".
-spec write(Dir :: file:filename(), [binary()], First :: [tuple()], Last :: [tuple()]) -> {ok, file:filename()} | {error, term()}.
write(Dir, Atoms, First, Last) ->
    Boot = filename:join(Dir, "boot"),
    maybe
        {ok, Binary} ?= file:read_file(filename:join([code:root_dir(), "bin", "no_dot_erlang.boot"])),
        {script, Id, Commands} = witness_event_external:decode(Binary),
        {Preloaded, [{path, _} | _] = Rest} = lists:splitwith(fun(Command) -> element(1, Command) =/= path end, Commands),
        ok ?= file:write_file(Boot ++ ".boot", script(Atoms, Id, Preloaded ++ First ++ Rest ++ Last)),
        {ok, Boot}
    end.

%% `{script, {Atoms, Id}, Commands}' in the external format, without making these atoms here.
script(Atoms, Id, Commands) ->
    [<<131, 104, 3>>, external(script), <<104, 2>>,
     case Atoms of [] -> []; _ -> <<108, (length(Atoms)):32>> end,
     [<<118, (byte_size(Name)):16, Name/binary>> || Name <- Atoms], <<106>>,
     external(Id), external(Commands)].

external(Term) ->
    <<131, External/binary>> = term_to_binary(Term),
    External.

-doc "In a VM that has read such a script: deletes its folder, even if the process that made it was killed meanwhile.".
-spec delete() -> ok.
delete() ->
    maybe
        {ok, [[Boot]]} ?= init:get_argument(boot),
        "boot." ++ _ ?= filename:basename(filename:dirname(Boot)),
        _ = file:del_dir_r(filename:dirname(Boot)),
        ok
    else
        _ -> ok
    end.
