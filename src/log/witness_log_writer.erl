-module(witness_log_writer).
-moduledoc """
Writes a log: a process that owns the file, and what others do to have events written.

Lines are made by those who write them, beside each other; the process only hands them to the file. Who writes faster
than the file takes it waits, so the lines that are on their way take a bounded amount of memory.

A log is opened before it is needed, to know that it can be written, and *begun* when it is: until then a file of that
name, from an earlier run, stays as it is. Nobody but its owner may read the file, since it holds whatever the
processes of a system say to each other. What is no plain file, such as a device or a named pipe, is written as it is.

```erlang
1> {ok, Log} = witness_log_writer:open("calc.log").
2> ok = witness_log_writer:begin_log(Log).
3> ok = witness_log_writer:write([{exit, self(), normal, undefined}], Log).
4> ok = witness_log_writer:close(Log).
```

When the process that has opened the log ends, what was written until then is in the file; one that was never begun
leaves nothing behind.
""".

-include_lib("kernel/include/file.hrl").

-export([open/1, begin_log/1, write/2, write_once/2, close/1, close_whole/1]).
-export([init/3]).

-export_type([log/0]).

-doc "A log that is open. Any process may write.".
-opaque log() :: {Writer :: pid(), witness_log:format(), Waiting :: atomics:atomics_ref()}.

%% Bytes that wait to be written, beyond which whoever writes waits too.
-define(WAITING, 4_194_304).
%% Bytes that are written at once, about.
-define(CHUNK, 262_144).
%% Symbolic links that are followed, one to the next.
-define(LINKS, 8).
%% Messages that bring lines.
-define(HAS_LINES(Message), (element(1, Message) =:= write orelse element(1, Message) =:= write_once orelse
                             element(1, element(3, Message)) =:= write)).

%% temporary: the name of the file until the log is begun
%% file: which one that is; none: no plain file
%% once: what was written once
%% failed: why what comes is thrown away
-record(writer, {name :: binary(),
                 device :: file:fd(),
                 temporary :: undefined | binary(),
                 file :: none | witness_log_input:identity(),
                 waiting :: atomics:atomics_ref(),
                 opener :: pid(),
                 once = #{} :: #{witness_event:proc() => []},
                 failed :: undefined | file:posix() | badarg | terminated}).

-doc """
Opens a log for the caller. Names that end in `.jsonl`, `.ndjson` or `.json` are those of JSON Lines, all others of
text. An error is text for people.
""".
-spec open(file:name_all()) -> {ok, log()} | {error, unicode:chardata()}.
open(File) ->
    maybe
        {ok, Name} ?= name(File),
        {ok, Format} ?= format(Name),
        Waiting = atomics:new(1, []),
        {Pid, Ref} = spawn_opt(?MODULE, init, [self(), Name, Waiting], [link, monitor, {message_queue_data, off_heap}]),
        receive
            {Pid, opened} ->
                demonitor(Ref, [flush]),
                {ok, {Pid, Format, Waiting}};
            {Pid, {refused, Reason}} ->
                demonitor(Ref, [flush]),
                {error, named(File, Reason)};
            {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
        end
    end.

%% The system may change the current folder before the log is begun.
name(File) ->
    case unicode:characters_to_binary(filename:absname(File)) of
        Name when is_binary(Name) -> {ok, Name};
        _ -> {error, "the name of a log is no text"}
    end.

format(Name) ->
    Extension = filename:extension(Name),
    case lists:member(string:lowercase(Extension), [~".gz", ~".zst"]) of
        true -> {error, [Name, ": logs are written uncompressed: a name without ", Extension, " is expected"]};
        false ->
            case witness_log:format_of(Name) of
                {ok, Format} -> {ok, Format};
                unknown -> {ok, text}
            end
    end.

named(File, Reason) -> [File, ": ", file:format_error(Reason)].

-doc "From now on the file has its name, and an earlier one is gone.".
-spec begin_log(log()) -> ok | {error, unicode:chardata()}.
begin_log({Pid, _, _}) -> call(Pid, begin_log).

-doc "Writes events, one after the other, with nothing between them. May wait for the file.".
-spec write([witness_event:item()], log()) -> ok.
write(Items, {Pid, Format, Waiting}) ->
    Lines = lines(Items, Format),
    case atomics:add_get(Waiting, 1, byte_size(Lines)) of
        Bytes when Bytes < ?WAITING ->
            Pid ! {write, Lines},
            ok;
        _ -> call(Pid, {write, Lines})
    end.

-doc "Writes an event unless one of the same process was written by this function before.".
-spec write_once(witness_event:item(), log()) -> ok.
write_once(Item, {Pid, Format, Waiting}) ->
    Line = lines([Item], Format),
    atomics:add(Waiting, 1, byte_size(Line)),
    Pid ! {write_once, witness_event:proc(Item), Line},
    ok.

lines([Item], Format) -> iolist_to_binary(witness_log:line(Item, Format));
lines(Items, Format) -> iolist_to_binary([witness_log:line(Item, Format) || Item <- Items]).

-doc "Ends the log: all that was written before is in the file, or it is said why it is not.".
-spec close(log()) -> ok | {error, unicode:chardata()}.
close({Pid, _, _}) -> call(Pid, close).

-doc "The same, but a file in which something is missing is deleted.".
-spec close_whole(log()) -> ok | {error, unicode:chardata()}.
close_whole({Pid, _, _}) -> call(Pid, close_whole).

call(Pid, Request) ->
    Ref = monitor(process, Pid),
    Pid ! {call, {self(), Ref}, Request},
    receive
        {Ref, Reply} ->
            demonitor(Ref, [flush]),
            Reply;
        {'DOWN', Ref, process, Pid, Reason} -> exit({log_ended, Reason})
    end.

%% --- the process -----------------------------------------------------------------

-doc false.
-spec init(pid(), binary(), atomics:atomics_ref()) -> ok.
init(Opener, Name, Waiting) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_log),
    case open_file(Name) of
        {ok, Temporary, Device} ->
            Opener ! {self(), opened},
            File = case Temporary of undefined -> none; _ -> witness_log_input:identity_of(Temporary) end,
            loop(#writer{name = Name, temporary = Temporary, file = File, device = Device, waiting = Waiting, opener = Opener});
        {error, Reason} ->
            Opener ! {self(), {refused, Reason}},
            ok
    end.

open_file(Name) ->
    case file:read_file_info(Name, [raw]) of
        {ok, #file_info{type = directory}} -> {error, eisdir};
        {ok, #file_info{type = regular, access = Access}} when Access =/= write, Access =/= read_write ->
            %% Its folder may be ours to change, but what must not be written is not replaced either.
            {error, eacces};
        {ok, #file_info{type = Type}} when Type =/= regular -> opened(undefined, file:open(Name, [write, raw, binary]));
        _ -> open_temporary(target(Name, ?LINKS))
    end.

%% What a symbolic link stands for is replaced, not the link.
target(Name, 0) -> Name;
target(Name, Depth) ->
    case file:read_link_all(Name) of
        {ok, Target} -> target(filename:absname(Target, filename:dirname(Name)), Depth - 1);
        {error, _} -> Name
    end.

open_temporary(Name) ->
    Temporary = <<(unicode:characters_to_binary(Name))/binary, $., (list_to_binary(os:getpid()))/binary, $.,
                  (integer_to_binary(erlang:unique_integer([positive])))/binary, ".new">>,
    maybe
        {ok, Device} ?= file:open(Temporary, [write, exclusive, raw, binary]),
        opened(Temporary, case file:change_mode(Temporary, 8#600) of ok -> {ok, Device}; Error -> Error end)
    end.

opened(Temporary, {ok, Device}) -> {ok, Temporary, Device};
opened(undefined, Error) -> Error;
opened(Temporary, Error) ->
    _ = file:delete(Temporary, [raw]),
    Error.

loop(W) ->
    receive
        {call, From, begin_log} -> loop(begun(From, W));
        {call, From, close} -> reply(From, closed(W));
        {call, From, close_whole} -> reply(From, whole(closed(W), W));
        {'EXIT', Opener, _} when Opener =:= W#writer.opener -> orphaned(W);
        {'EXIT', _, _} -> loop(W);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, W);
        Lines -> loop(gather(Lines, [], 0, [], W))
    end.

%% What waits is written together, in the order in which it came.
gather({write, New}, Lines, Size, Waiting, W) -> more([New | Lines], Size + byte_size(New), Waiting, W);
gather({call, From, {write, New}}, Lines, Size, Waiting, W) ->
    more([New | Lines], Size + byte_size(New), [From | Waiting], W);
gather({write_once, Key, Line}, Lines, Size, Waiting, W = #writer{once = Once}) ->
    case Once of
        #{Key := _} ->
            atomics:sub(W#writer.waiting, 1, byte_size(Line)),
            more(Lines, Size, Waiting, W);
        #{} -> more([Line | Lines], Size + byte_size(Line), Waiting, W#writer{once = Once#{Key => []}})
    end.

more(Lines, Size, Waiting, W) when Size < ?CHUNK ->
    receive
        Message when ?HAS_LINES(Message) ->
            gather(Message, Lines, Size, Waiting, W)
    after 0 -> put_lines(Lines, Size, Waiting, W)
    end;
more(Lines, Size, Waiting, W) -> put_lines(Lines, Size, Waiting, W).

%% After an error nothing more is written: behind what is missing it would be taken for what happened next.
put_lines(Lines, Size, Waiting, W = #writer{device = Device, failed = Failed}) ->
    Result = case Failed of
        undefined -> file:write(Device, lists:reverse(Lines));
        _ -> {error, Failed}
    end,
    atomics:sub(W#writer.waiting, 1, Size),
    lists:foreach(fun(From) -> reply(From, ok) end, Waiting),
    case Result of
        ok -> W;
        {error, Reason} -> W#writer{failed = Reason}
    end.

reply({Pid, Ref}, Reply) ->
    Pid ! {Ref, Reply},
    ok.

begun(From, W = #writer{temporary = undefined}) ->
    reply(From, ok),
    W;
begun(From, W = #writer{temporary = Temporary, name = Name}) ->
    case file:rename(Temporary, target(Name, ?LINKS)) of
        ok ->
            reply(From, ok),
            W#writer{temporary = undefined};
        {error, Reason} ->
            reply(From, {error, named(Name, Reason)}),
            W
    end.

closed(W = #writer{device = Device, name = Name, failed = Failed}) ->
    Closed = file:close(Device),
    discard(W),
    case Failed of
        undefined when Closed =:= ok -> ok;
        undefined -> {error, named(Name, element(2, Closed))};
        _ -> {error, named(Name, Failed)}
    end.

%% A device stays, and so does a file of that name that is not this one.
whole({error, _} = Error, #writer{temporary = undefined, name = Name, file = File}) ->
    Target = target(Name, ?LINKS),
    _ = [file:delete(Target, [raw]) || File =/= none, witness_log_input:identity_of(Target) =:= File],
    Error;
whole(Result, _) -> Result.

discard(#writer{temporary = undefined}) -> ok;
discard(#writer{temporary = Temporary}) ->
    _ = file:delete(Temporary, [raw]),
    ok.

%% Nobody will close the log, but what is here is worth having.
orphaned(W) ->
    receive
        Message when ?HAS_LINES(Message) ->
            orphaned(gather(Message, [], 0, [], W))
    after 0 ->
        _ = closed(W),
        ok
    end.
