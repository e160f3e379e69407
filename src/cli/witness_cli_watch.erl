-module(witness_cli_watch).
-moduledoc """
Does something again whenever one of its files changes, until it is told to stop.

The files are looked at four times a second, since OTP does not report changes. A specification, and what it includes, has changed if its
contents have. A log may be large: it has changed if its modification time (in seconds), its size or its inode has, and the folder of a
recording if one of its files has. A change counts when two looks in a row have seen the same: an editor may write a file in parts, or
remove it first and then rename another one. A log that never rests counts after eight looks. A file that is not there is like one with
other contents.
""".

-include_lib("kernel/include/file.hrl").

-export([run/3, wait/0, sources/2]).

-export_type([file/0, wait/0]).

-doc "A file that is compared by its contents, or a log.".
-type file() :: {source | log, file:filename()}.

-doc "Returns when it is time for a look, or to stop.".
-type wait() :: fun(() -> look | stop).

-define(LOOK_MS, 250).
-define(MAX_LOOKS, 8).
%% Specifications and included files that are larger are errors.
-define(MAX_SOURCE_BYTES, 4_000_000).
-define(IS_SOURCE(Info), (Info#file_info.type =:= regular andalso Info#file_info.size =< ?MAX_SOURCE_BYTES)).
-define(MAX_SOURCES, 200).

-doc """
Calls `Round` now, and after each change of a file. Which files there are is asked before each look. Returns the result of the last round;
it is the last one if it says `stop`.
""".
-spec run(Files :: fun(() -> [file()]), Round :: fun(() -> {go_on | stop, Result}), wait()) -> Result.
run(Files, Round, Wait) ->
    %% What changes during the round is a change.
    Seen = look(Files),
    case Round() of
        {stop, Result} -> Result;
        {go_on, Result} ->
            case changed(Seen, Files, Wait) of
                look -> run(Files, Round, Wait);
                stop -> Result
            end
    end.

changed(Seen, Files, Wait) ->
    maybe
        look ?= Wait(),
        case look(Files) of
            Seen -> changed(Seen, Files, Wait);
            Now -> settled(Now, Files, Wait, ?MAX_LOOKS)
        end
    end.

settled(_, _, _, 0) -> look;
settled(Seen, Files, Wait, Looks) ->
    maybe
        look ?= Wait(),
        case look(Files) of
            Seen -> look;
            Now -> settled(Now, Files, Wait, Looks - 1)
        end
    end.

-doc "Waits a quarter of a second; stops at an interrupt, or if standard output has no reader any more.".
-spec wait() -> look | stop.
wait() ->
    receive
        Stop when Stop =:= interrupt; Stop =:= output_closed -> stop;
        {'EXIT', Port, _} when is_port(Port) -> stop
    after ?LOOK_MS -> look
    end.

look(Files) -> [{File, state(File)} || File <- Files()].

state({Kind, File}) ->
    case {Kind, file:read_file_info(File, [{time, posix}])} of
        {source, {ok, Info}} when ?IS_SOURCE(Info) ->
            case file:read_file(File) of
                {ok, Text} -> erlang:md5(Text);
                {error, _} = Error -> Error
            end;
        {log, {ok, #file_info{type = directory}}} ->
            case file:list_dir(File) of
                {ok, Names} -> [{Name, state({log, filename:join(File, Name)})} || Name <- lists:sort(Names)];
                {error, _} = Error -> Error
            end;
        {_, {ok, #file_info{mtime = Time, size = Size, inode = Inode, major_device = Device}}} -> {Time, Size, Inode, Device};
        {_, {error, _} = Error} -> Error
    end.

-doc """
The files that a specification depends on: itself, and where it looks for what it includes, whether something is there or not. `Folders`: those
of included files, besides its own.
""".
-spec sources(file:filename(), [file:filename()]) -> [file()].
sources(File, Folders) -> [{source, Name} || Name <- sources([File], Folders, [])].

sources([File | Files], Folders, Found) when length(Found) < ?MAX_SOURCES ->
    case lists:member(File, Found) of
        true -> sources(Files, Folders, Found);
        false -> sources(Files ++ included(File, Folders), Folders, Found ++ [File])
    end;
sources(_, _, Found) -> Found.

included(File, Folders) ->
    maybe
        {ok, Info} ?= file:read_file_info(File),
        true ?= ?IS_SOURCE(Info),
        {ok, Text} ?= file:read_file(File),
        {match, Names} ?= re:run(Text, ~B'^\s*-\s*include\s*\(\s*"([^"\n]+)"', [global, multiline, {capture, all_but_first, list}]),
        [filename:join(Folder, Name) || [Name] <- Names, Folder <- [filename:dirname(File) | Folders]]
    else
        _ -> []
    end.
