-module(witness_log_writer).
-moduledoc """
Writes a log: a process that owns the file, and the functions with which other processes write events.

The processes that write make the lines, in parallel; the owner only writes them to the file. A process that writes faster
than the file takes it waits, so the lines that wait take a bounded amount of memory.

A log is opened before it is needed, to check that it can be written, and *begun* when it is needed. Until then a file of that
name, from an earlier run, stays as it is. Only its owner may read the file, since it has all messages between the
processes of a system. If the name is not that of a plain file, but of a device or a named pipe, that is written directly.

```erlang
1> {ok, Log} = witness_log_writer:open("calc.log").
2> ok = witness_log_writer:begin_log(Log).
3> ok = witness_log_writer:write([{exit, self(), normal, undefined}], Log).
4> ok = witness_log_writer:close(Log).
```

When the process that opened the log ends, everything that was written is in the file. A log that was never begun
leaves no file.
""".

-include_lib("kernel/include/file.hrl").

-export([open/1, open/2, begin_log/1, write/2, write_head/2, close/1, close_whole/1]).
-export([init/4]).

-export_type([log/0]).

-doc "An open log. Any process may write.".
-opaque log() :: {Writer :: pid(), witness_log:format(), Waiting :: atomics:atomics_ref()}.

%% High-water mark: bytes that wait to be written, above which writers wait too.
-define(HIGH_WATER_BYTES, 4_194_304).
%% Approximate bytes that are written at once.
-define(CHUNK_BYTES, 262_144).
%% Maximum length of a chain of symbolic links.
-define(MAX_LINKS, 8).
%% Messages that bring lines.
-define(HAS_LINES(Message), (element(1, Message) =:= write orelse element(1, Message) =:= write_head orelse
                             element(1, element(3, Message)) =:= write)).

%% temporary: the name of the file until the log is begun
%% file: its identity; none: not a plain file
%% headed: whether `write_head/2' has written its line
%% left: bytes that may still be written
%% failed: the error after which everything is discarded
-record(writer, {name :: binary(),
                 device :: file:fd(),
                 temporary :: undefined | binary(),
                 file :: none | witness_log_input:identity(),
                 waiting :: atomics:atomics_ref(),
                 opener :: pid(),
                 headed = false :: boolean(),
                 left :: non_neg_integer() | infinity,
                 failed :: undefined | too_large | file:posix() | badarg | terminated}).

-doc """
Opens a log for the caller. Names that end in `.jsonl`, `.ndjson` or `.json` select JSON Lines, all others
text. An error is text for people.
""".
-spec open(file:name_all()) -> {ok, log()} | {error, unicode:chardata()}.
open(File) -> open(File, infinity).

-doc "The same for a file of at most so many bytes. What would make it larger is not written, nor what comes after it.".
-spec open(file:name_all(), MaxBytes :: pos_integer() | infinity) -> {ok, log()} | {error, unicode:chardata()}.
open(File, MaxBytes) ->
    maybe
        {ok, Name} ?= name(File),
        {ok, Format} ?= format(Name),
        Waiting = atomics:new(1, []),
        {Pid, Ref} = spawn_opt(?MODULE, init, [self(), Name, Waiting, MaxBytes], [link, monitor, {message_queue_data, off_heap}]),
        receive
            {Pid, opened} ->
                demonitor(Ref, [flush]),
                {ok, {Pid, Format, Waiting}};
            {Pid, {refused, Reason}} ->
                demonitor(Ref, [flush]),
                {error, name_error(File, Reason)};
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

name_error(File, too_large) -> [File, ": it may not become larger (log_size)"];
name_error(File, Reason) -> [File, ": ", file:format_error(Reason)].

-doc "Gives the file its name, and replaces an earlier one.".
-spec begin_log(log()) -> ok | {error, unicode:chardata()}.
begin_log({Pid, _, _}) -> call(Pid, begin_log).

-doc "Writes events, one after the other, without other events between them. May wait for the file.".
-spec write([witness_log:entry()], log()) -> ok.
write(Items, {Pid, Format, Waiting}) ->
    Lines = lines(Items, Format),
    case atomics:add_get(Waiting, 1, byte_size(Lines)) of
        Bytes when Bytes < ?HIGH_WATER_BYTES ->
            Pid ! {write, Lines},
            ok;
        _ -> call(Pid, {write, Lines})
    end.

-doc """
Writes a `receives` that begins a new head within the log, unless this function has already written one. What the caller writes later
comes behind it.
""".
-spec write_head({receives, taken | delivered}, log()) -> ok.
write_head(Head, {Pid, Format, Waiting}) ->
    Line = lines([Head], Format),
    atomics:add(Waiting, 1, byte_size(Line)),
    Pid ! {write_head, Line},
    ok.

lines([Item], Format) -> iolist_to_binary(witness_log:line(Item, Format));
lines(Items, Format) -> iolist_to_binary([witness_log:line(Item, Format) || Item <- Items]).

-doc "Ends the log: everything written is in the file, or the error says why it is not.".
-spec close(log()) -> ok | {error, unicode:chardata()}.
close({Pid, _, _}) -> call(Pid, close).

-doc "The same, but deletes an incomplete file.".
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
-spec init(pid(), binary(), atomics:atomics_ref(), pos_integer() | infinity) -> ok.
init(Opener, Name, Waiting, MaxBytes) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_log),
    case open_file(Name) of
        {ok, Temporary, Device} ->
            Opener ! {self(), opened},
            File = case Temporary of undefined -> none; _ -> witness_log_input:identity_of(Temporary) end,
            loop(#writer{name = Name, temporary = Temporary, file = File, device = Device, waiting = Waiting, opener = Opener,
                         left = MaxBytes});
        {error, Reason} ->
            Opener ! {self(), {refused, Reason}},
            ok
    end.

open_file(Name) ->
    case file:read_file_info(Name, [raw]) of
        {ok, #file_info{type = directory}} -> {error, eisdir};
        {ok, #file_info{type = regular, access = Access}} when Access =/= write, Access =/= read_write ->
            %% The folder may be writable, but a file that must not be written is not replaced either.
            {error, eacces};
        {ok, #file_info{type = Type}} when Type =/= regular -> keep_open(undefined, file:open(Name, [write, raw, binary]));
        _ -> open_temporary(target(Name, ?MAX_LINKS))
    end.

%% The target of a symbolic link is replaced, not the link.
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
        keep_open(Temporary, case file:change_mode(Temporary, 8#600) of ok -> {ok, Device}; Error -> Error end)
    end.

keep_open(Temporary, {ok, Device}) -> {ok, Temporary, Device};
keep_open(undefined, Error) -> Error;
keep_open(Temporary, Error) ->
    _ = file:delete(Temporary, [raw]),
    Error.

loop(W) ->
    receive
        {call, From, begin_log} -> loop(begin_file(From, W));
        {call, From, close} -> reply(From, close_file(W));
        {call, From, close_whole} -> reply(From, remove_partial(close_file(W), W));
        {'EXIT', Opener, _} when Opener =:= W#writer.opener -> drain(W);
        {'EXIT', _, _} -> loop(W);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, W);
        Lines -> loop(gather(Lines, [], 0, [], W))
    end.

%% Waiting lines are written together, in the order in which they arrived.
gather({write, New}, Lines, Size, Waiting, W) -> gather_more([New | Lines], Size + byte_size(New), Waiting, W);
gather({call, From, {write, New}}, Lines, Size, Waiting, W) ->
    gather_more([New | Lines], Size + byte_size(New), [From | Waiting], W);
gather({write_head, Line}, Lines, Size, Waiting, W = #writer{headed = true}) ->
    atomics:sub(W#writer.waiting, 1, byte_size(Line)),
    gather_more(Lines, Size, Waiting, W);
gather({write_head, Line}, Lines, Size, Waiting, W) ->
    gather_more([Line | Lines], Size + byte_size(Line), Waiting, W#writer{headed = true}).

gather_more(Lines, Size, Waiting, W) when Size < ?CHUNK_BYTES ->
    receive
        Message when ?HAS_LINES(Message) ->
            gather(Message, Lines, Size, Waiting, W)
    after 0 -> put_lines(Lines, Size, Waiting, W)
    end;
gather_more(Lines, Size, Waiting, W) -> put_lines(Lines, Size, Waiting, W).

%% After an error nothing more is written: later lines would seem to follow those before the missing ones.
put_lines(Lines, Size, Waiting, W = #writer{device = Device, left = Left, failed = Failed}) ->
    Result = case Failed of
        undefined when Size =< Left -> file:write(Device, lists:reverse(Lines));
        undefined -> {error, too_large};
        _ -> {error, Failed}
    end,
    atomics:sub(W#writer.waiting, 1, Size),
    lists:foreach(fun(From) -> reply(From, ok) end, Waiting),
    case Result of
        ok when Left =:= infinity -> W;
        ok -> W#writer{left = Left - Size};
        {error, Reason} -> W#writer{failed = Reason}
    end.

reply({Pid, Ref}, Reply) ->
    Pid ! {Ref, Reply},
    ok.

begin_file(From, W = #writer{temporary = undefined}) ->
    reply(From, ok),
    W;
begin_file(From, W = #writer{temporary = Temporary, name = Name}) ->
    case file:rename(Temporary, target(Name, ?MAX_LINKS)) of
        ok ->
            reply(From, ok),
            W#writer{temporary = undefined};
        {error, Reason} ->
            reply(From, {error, name_error(Name, Reason)}),
            W
    end.

close_file(W = #writer{device = Device, name = Name, failed = Failed}) ->
    Closed = file:close(Device),
    discard(W),
    case Failed of
        undefined when Closed =:= ok -> ok;
        undefined -> {error, name_error(Name, element(2, Closed))};
        _ -> {error, name_error(Name, Failed)}
    end.

%% Keeps a device, and another file of that name.
remove_partial({error, _} = Error, #writer{temporary = undefined, name = Name, file = File}) ->
    Target = target(Name, ?MAX_LINKS),
    _ = [file:delete(Target, [raw]) || File =/= none, witness_log_input:identity_of(Target) =:= File],
    Error;
remove_partial(Result, _) -> Result.

discard(#writer{temporary = undefined}) -> ok;
discard(#writer{temporary = Temporary}) ->
    _ = file:delete(Temporary, [raw]),
    ok.

%% No process will close the log, but its waiting lines are still written.
drain(W) ->
    receive
        Message when ?HAS_LINES(Message) ->
            drain(gather(Message, [], 0, [], W))
    after 0 ->
        _ = close_file(W),
        ok
    end.
