-module(witness_run_holdings).
-moduledoc """
What is alive with a process: its registered name, its tables, its ports, and what it monitors, as the VM tells it at this moment.

The VM copies all monitors of a process for the process that asks. Nothing tells at no cost how many there are. So the memory of the process is
asked for first: the VM adds up its parts, without copying them. A process that may have very many monitors is not asked for them, nor for
its memory again.

*Invariant:* what a look costs is bounded, whatever the processes have.
""".

-export([new/0, monitors/3, repeated/1, tables/0, holds/3, format/2, format_target/3]).

-export_type([budget/0, holds/0, monitors/0, tables/0, target/0]).

-doc "How many monitors may still be read at a look.".
-type budget() :: non_neg_integer().

-doc "What a process monitors: once for each monitor. `large`: there may be too many to read; `unknown`: too many at this look.".
-type monitors() :: {known, [target()]} | large | unknown.

-type target() :: pid() | port() | {Name :: atom(), node()}.

-doc "The tables of each process.".
-type tables() :: #{pid() => [ets:table(), ...]}.

-doc "Of each kind the first ones, and how many there are.".
-type holds() :: #{name := atom() | undefined, tables := {non_neg_integer(), [{atom(), non_neg_integer()}]},
                   ports := {non_neg_integer(), [unicode:chardata()]}, monitors := non_neg_integer()}.

-define(MAX_MONITORS, 100_000).
-define(MAX_MONITORS_OF_ALL, 200_000).
%% The VM goes through the mailbox when it adds up the memory.
-define(MAX_MAILBOX, 100_000).
%% What the VM needs for a monitor, and at least for a message that waits, in bytes.
-define(MONITOR_BYTES, 72).
-define(MESSAGE_BYTES, 88).
%% Monitors of the same process are counted from so many on, of so many processes.
-define(REPEATED, 100).
-define(MAX_REPEATED, 10).
-define(MAX_NAMED, 3).
-define(NAME_CHARACTERS, 80).

-doc "What a look may cost.".
-spec new() -> budget().
new() -> ?MAX_MONITORS_OF_ALL.

-doc "What a process monitors, if it can be read at a small cost, and what a look may cost after it.".
-spec monitors(pid(), Mailbox :: non_neg_integer(), budget()) -> {monitors(), budget()}.
monitors(_, Mailbox, Left) when Left =:= 0; Mailbox > ?MAX_MAILBOX -> {unknown, Left};
monitors(P, Mailbox, Left) ->
    case process_info(P, [memory, total_heap_size]) of
        undefined -> {{known, []}, Left};
        [{_, Bytes}, {_, Words}] ->
            Others = Bytes - Words * erlang:system_info(wordsize) - Mailbox * ?MESSAGE_BYTES,
            read(P, max(1, Others div ?MONITOR_BYTES), Left)
    end.

%% To add up the memory has cost something already.
read(_, Count, Left) when Count > ?MAX_MONITORS -> {large, max(0, Left - Count)};
read(_, Count, Left) when Count > Left -> {unknown, 0};
read(P, Count, Left) ->
    case process_info(P, monitors) of
        undefined -> {{known, []}, Left};
        {monitors, Monitors} ->
            {{known, [Target || {Kind, Target} <- Monitors, Kind =:= process orelse Kind =:= port]}, Left - Count}
    end.

-doc "What is monitored many times, and how often, with its registered name: those that are monitored most often.".
-spec repeated([target()]) -> [{target(), Name :: atom(), Count :: pos_integer()}].
repeated(Targets) ->
    Counts = lists:foldl(fun(Target, Acc) -> maps:update_with(Target, fun(N) -> N + 1 end, 1, Acc) end, #{}, Targets),
    Often = lists:sort(fun({_, First}, {_, Second}) -> First >= Second end, [{T, N} || T := N <- Counts, N >= ?REPEATED]),
    [{Target, name(Target), Count} || {Target, Count} <- lists:sublist(Often, ?MAX_REPEATED)].

name(P) when is_pid(P), node(P) =:= node() ->
    case process_info(P, registered_name) of
        {registered_name, Name} -> Name;
        _ -> undefined
    end;
name(_) -> undefined.

-doc "The tables of all processes.".
-spec tables() -> tables().
tables() ->
    Owned = [{Owner, Table} || Table <- ets:all(), Owner <- [ets:info(Table, owner)], is_pid(Owner)],
    maps:groups_from_list(fun({Owner, _}) -> Owner end, fun({_, Table}) -> Table end, Owned).

-doc "What is alive with a process.".
-spec holds(pid(), monitors(), tables()) -> holds().
holds(P, Monitors, Tables) ->
    Owned = lists:sort([{Name, Objects} || Table <- maps:get(P, Tables, []), Name <- [ets:info(Table, name)], Name =/= undefined,
                                           Objects <- [ets:info(Table, size)], is_integer(Objects)]),
    Ports = case process_info(P, links) of
        {links, Links} -> [Port || Port <- Links, is_port(Port)];
        undefined -> []
    end,
    #{name => name(P), tables => {length(Owned), lists:sublist(Owned, ?MAX_NAMED)},
      ports => {length(Ports), lists:append([port(Port) || Port <- lists:sublist(lists:sort(Ports), ?MAX_NAMED)])},
      monitors => case Monitors of
          {known, Targets} -> length(lists:usort([Target || Target <- Targets, not is_port(Target)]));
          _ -> 0
      end}.

%% Of a program its arguments may be secrets.
port(Port) ->
    case erlang:port_info(Port, name) of
        {name, "tcp_inet"} -> [[~"TCP socket", number(Port)]];
        {name, "udp_inet"} -> [[~"UDP socket", number(Port)]];
        {name, "sctp_inet"} -> [[~"SCTP socket", number(Port)]];
        {name, Name} ->
            [Program | _] = string:split(Name, " "),
            [[~"port ", witness_text:cut(witness_text:clean(filename:basename(Program)), ?NAME_CHARACTERS)]];
        undefined -> []
    end.

number(Port) ->
    case inet:port(Port) of
        {ok, Number} when is_integer(Number) -> [~" (port ", integer_to_binary(Number), $)];
        _ -> ~""
    end.

-doc "As the end of a line about the process.".
-spec format(holds(), witness_event:syntax()) -> unicode:chardata().
format(#{name := Name, tables := {Tables, FirstTables}, ports := {Ports, FirstPorts}, monitors := Monitors}, Syntax) ->
    Held = [[~"the name ", atom(Name, Syntax)] || Name =/= undefined]
        ++ [[~"table ", atom(Table, Syntax), ~" (", witness_text:count(Objects, ~"object", ~"objects"), $)]
            || {Table, Objects} <- FirstTables]
        ++ more(Tables - length(FirstTables), ~"other table", ~"other tables")
        ++ FirstPorts
        ++ more(Ports - length(FirstPorts), ~"other port", ~"other ports"),
    Parts = [[~"has ", witness_text:list(Held)] || Held =/= []]
        ++ [[~"monitors ", witness_text:count(Monitors, ~"process", ~"processes")] || Monitors > 0],
    [[~"; ", lists:join(~", ", Parts)] || Parts =/= []].

more(0, _, _) -> [];
more(Count, One, Many) -> [witness_text:count(Count, One, Many)].

atom(Name, Syntax) -> witness_event:format_term(Name, ?NAME_CHARACTERS, Syntax).

-doc "What is monitored, with its registered name.".
-spec format_target(target(), Name :: atom(), witness_event:syntax()) -> unicode:chardata().
format_target(P, undefined, Syntax) when is_pid(P) -> witness_event:format_proc(P, Syntax);
format_target(P, Name, Syntax) when is_pid(P) -> [witness_event:format_proc(P, Syntax), ~" (", atom(Name, Syntax), $)];
format_target({Name, Node}, _, Syntax) when Node =:= node() -> atom(Name, Syntax);
format_target(Target, _, Syntax) -> witness_event:format_term(Target, ?NAME_CHARACTERS, Syntax).
