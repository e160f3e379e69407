-module(witness_cli_log).
-moduledoc """
`witness log`: shows the contents of a recording (`m:witness_log_recording`), as text, as JSON Lines, or as a sequence of messages.

With `--json` every line is an object with `v` (1) and `type`. Fields that do not apply are `null`; terms are text, cut to a limit.

- `recording`, the first one: `dir`, `complete`, `ended` (`null`: not known, since the VM has died or still records), `stopped` (how
  the program ended, if the recording ended as planned with it: processes that were alive then were stopped),
  `cut` (names of files), `otp`, `erts`, `started`, `processes`;
- `process`: `id`, `process`, `parent` (an id, or `null`), `place` (among the children of the parent, from 0), `signature`, `ended`,
  `entries`. The objects that follow are its entries, up to the next `process`;
- `entry`: `id` of the process, `index` (from 1), `kind`, `count` (how many of the same follow each other), and by kind: `from`
  (`from` and `named`: an id, `null` for a process that is not recorded), `text` (`content`, `contents`, `exit`; of
  `result`, `raise` and `sent` with `call` or `to`), `child` (`spawn`), `hash`;
- a `process` and an `entry` of a recording with times have `time`, that of the birth and of the entry: nanoseconds since the recording
  was opened;
- `message`, with `--sequence`: `from` (`null`: from outside), `to`, `count`, `text` (`null`: its contents were not recorded).

A sequence is written in the language of Mermaid. Between processes, a recording has only the order that follows from births.
The lines are in one order that agrees with the log of each process.
""".

-export([run/1, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{recording := string(), json := boolean(), sequence := boolean(), processes => [string()],
                     signatures => [string()], syntax => auto | witness_event:syntax(), max_atoms => pos_integer()}.

-define(MAX_TERM_CHARS, 400).
-define(MAX_JSON_CHARS, 2000).
-define(MAX_SIGNATURE_CHARS, 100).
-define(MAX_LABEL_CHARS, 60).
%% The number of lines that are printed together.
-define(BATCH_LINES, 500).

%% names: the pid and signature of each process, by its id. held: lines that were not printed yet, the last one first.
-record(show, {recording :: witness_log_recording:recording(),
               out :: witness_cli_io:out(),
               json :: boolean(),
               names :: #{pos_integer() => {Pid :: binary(), Signature :: binary()}},
               syntaxes :: #{pos_integer() => witness_event:syntax()},
               held = [] :: [iodata()],
               lines = 0 :: non_neg_integer()}).

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Shows what a recording has: for each process what it did, in its order. A recording that was cut is shown up "
               "to there.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 it was shown; 2 wrong usage, or a recording that is damaged, and where.\n\n"
               "  witness log shop.rec\n"
               "  witness log shop.rec --process '<0.91.0>' --json\n"
               "  witness log shop.rec --sequence\n"],
      arguments => witness_cli_options:arguments(log, [
        #{name => processes, flag => "--process", argument => "PROCESS", repeated => true,
          text => ~"only this process: its id in the recording, or its name, such as '<0.91.0>'; may be repeated"},
        #{name => sequence, flag => "--sequence",
          text => ~"show messages between processes, in the language of Mermaid; with --process those of these processes"},
        witness_cli_options:json(~"one JSON object a line"),
        signatures, syntax, max_atoms,
        #{name => recording, argument => "DIR", text => ~"the folder of the recording"}])}.

-doc "Shows it and returns the exit code. `error`: text for people.".
-spec run(options()) -> {ok, 0} | {error, unicode:chardata()}.
run(#{recording := Dir, json := Json, sequence := Sequence} = Options) ->
    maybe
        MaxAtoms = maps:get(max_atoms, Options, witness_cli_options:default(log, max_atoms)),
        {ok, Rows} ?= witness_cli_call:signatures(Options),
        {ok, R} ?= format_result(witness_log_recording:open(Dir, Rows#{max_atoms => MaxAtoms})),
        {ok, Processes} ?= format_result(witness_log_recording:processes(R)),
        Known = add_unborn(Processes, witness_log_recording:ids(R)),
        Names = names(Known, #{}),
        {ok, Wanted} ?= select(maps:get(processes, Options, all), Names),
        Syntaxes = lists:foldl(fun add_syntax/2, #{}, Known),
        ok = witness_cli_setup:hide_structs(Dir, []),
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Show = #show{recording = R, out = Out, json = Json, syntaxes = Syntaxes,
                     %% In JSON, processes are data, in the notation of Erlang.
                     names = case Json of true -> Names; false -> names(Known, Syntaxes) end},
        ok ?= format_result(shown(Sequence, Dir, Wanted, Known, Show)),
        {ok, 0}
    end.

shown(Sequence, Dir, Wanted, Known, Show) ->
    try
        case Sequence of
            true -> sequence(Wanted, Known, Show);
            false -> listing([P || #{id := Id} = P <- Known, Wanted =:= all orelse lists:member(Id, Wanted)],
                             printed(heading(Dir, length(Known), Show), Show))
        end
    catch
        throw:output_closed -> ok
    end.

format_result({error, Error}) -> {error, witness:format_error(Error)};
format_result(Result) -> Result.

%% Adds processes that have entries, but no `spawn' entry, because that was cut away.
add_unborn(Processes, Ids) ->
    Born = #{Id => [] || #{id := Id} <- Processes},
    Unborn = [#{id => Id, parent => 0, place => 0, pid => undefined, called => undefined, ended => false}
              || Id <- Ids, not is_map_key(Id, Born)],
    lists:sort(fun(#{id := A}, #{id := B}) -> A =< B end, Processes ++ Unborn).

names(Processes, Syntaxes) ->
    #{Id => {name(Pid, Syntax), signature(Called, Syntax)}
      || #{id := Id, pid := Pid, called := Called} <- Processes, Syntax <- [maps:get(Id, Syntaxes, erlang)]}.

%% Of a fun, perhaps no module is known. The process has the language of its parent, which has a lower number.
add_syntax(#{id := Id, parent := Parent, called := {erlang, apply, _}}, Syntaxes) ->
    Syntaxes#{Id => maps:get(Parent, Syntaxes, witness_event:syntax([]))};
add_syntax(#{id := Id, called := Called}, Syntaxes) -> Syntaxes#{Id => witness_event:syntax_of_function(Called)}.

name(undefined, _) -> ~"?";
name(Pid, Syntax) -> witness_event:format_term(Pid, 60, Syntax).

signature(undefined, _) -> ~"?";
signature({_, _, Args} = Signature, Syntax) when is_list(Args) ->
    witness_text:cut(witness_event:format_signature(Signature, Syntax), ?MAX_SIGNATURE_CHARS);
signature(Function, Syntax) -> witness_event:format_function(Function, Syntax).

select(all, _) -> {ok, all};
select(Given, Names) -> select(Given, #{Pid => Id || Id := {Pid, _} <- Names}, Names, []).

select([], _, _, Ids) -> {ok, Ids};
select([Text | Texts], Pids, Names, Ids) ->
    %% In Elixir a pid is #PID<0.90.0>.
    Given = case unicode:characters_to_binary(Text) of <<"#PID", Pid/binary>> -> Pid; Name -> Name end,
    Number = try binary_to_integer(Given) catch error:badarg -> none end,
    case Pids of
        #{Given := Id} -> select(Texts, Pids, Names, [Id | Ids]);
        _ when is_map_key(Number, Names) -> select(Texts, Pids, Names, [Number | Ids]);
        _ -> {error, [~"--process: there is no process '", witness_text:clean(Given), ~"' in the recording"]}
    end.

%% --- what each process did -------------------------------------------------------

listing([], Show) ->
    _ = flush(Show),
    ok;
listing([#{id := Id} = Process | Processes], #show{recording = R} = Show) ->
    maybe
        {ok, Count} ?= witness_log_recording:entries(Id, R),
        Show1 = printed(process(Process, Count, Show), Show),
        {ok, Show2} ?= entries(Id, Show1, R),
        listing(Processes, Show2)
    end.

%% Entries that were read before an error are shown, too.
entries(Id, Show, R) ->
    witness_log_recording:with_cursors(fun(Cursor) ->
        case Cursor(Id) of
            {ok, none} -> {ok, Show};
            {ok, First} -> entries(First, Id, 1, Show);
            {error, _} = Error -> Error
        end
    end, R).

entries(Cursor, Id, Index, Show) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, Entry, Cursor1} ->
            Time = witness_log_recording_cursor:time(Cursor1),
            Next = Index + witness_log_recording_cursor:count(Entry),
            entries(Cursor1, Id, Next, printed(entry(Entry, Time, Id, Index, Show), Show));
        done -> {ok, Show};
        {error, _} = Error ->
            _ = flush(Show),
            Error
    end.

heading(Dir, Processes, #show{recording = R, json = true}) ->
    #{complete := Complete, ended := Ended, stopped := Stopped, cut := Cut} = witness_log_recording:info(R),
    Header = witness_log_recording:header(R),
    json(recording, [{dir, witness_text:clean(Dir)}, {complete, Complete},
                     {ended, case Ended of unknown -> null; _ -> term(Ended, erlang) end},
                     {stopped, case Stopped of none -> null; _ -> term(Stopped, erlang) end}, {cut, Cut}]
                    ++ [{Key, text(maps:get(Key, Header, null))} || Key <- [otp, erts, started]]
                    ++ [{processes, Processes}]);
heading(Dir, Processes, #show{recording = R}) ->
    #{ended := Ended, cut := Cut} = witness_log_recording:info(R),
    Header = witness_log_recording:header(R),
    [witness_text:clean(Dir), ~": ", witness_text:count(Processes, ~"process", ~"processes"),
     [[~", Erlang/OTP ", text(Otp)] || #{otp := Otp} <- [Header]],
     [[~", ", text(Started)] || #{started := Started} <- [Header]],
     $\n,
     [~"it was recorded with --tracing-only: messages stand where they came, and not where they were taken\n"
      || #{tracing_only := true} <- [Header]],
     [~"it begins late: only the last part was kept\n" || #{late := true} <- [Header]],
     case Ended of
         finished -> ~"";
         unknown -> ~"it has no end: the VM has died, or still records\n";
         _ -> [~"it ended before the program: ", witness_event:format_term(Ended, ?MAX_TERM_CHARS), $\n]
     end,
     [[~"cut: ", lists:join(~", ", [atom_to_binary(Kind) || Kind <- Cut]), $\n] || Cut =/= []]].

process(#{id := Id, parent := Parent, place := Place, ended := Ended} = Process, Count, #show{json = true, names = Names}) ->
    #{Id := {Pid, Signature}} = Names,
    json(process, [{id, Id}, {process, Pid}, {parent, id(Parent)}, {place, Place}, {signature, iolist_to_binary(Signature)},
                   {ended, Ended}, {entries, Count}] ++ time(maps:get(time, Process, undefined)));
process(#{id := Id, parent := Parent, ended := Ended}, Count, #show{names = Names, recording = R} = Show) ->
    #{stopped := Stopped} = witness_log_recording:info(R),
    #{Id := {_, Signature}} = Names,
    [$\n, who(Id, Show), ~"  ", Signature, [[~", spawned by ", who(Parent, Show)] || Parent =/= 0],
     ~": ", witness_text:count(Count, ~"entry", ~"entries"),
     [~", alive when the recording ended" || not Ended, Stopped =/= none], $\n].

entry(Entry, Time, Id, Index, #show{json = true} = Show) ->
    json(entry, [{id, Id}, {index, Index}, {kind, kind(Entry)}, {count, witness_log_recording_cursor:count(Entry)}]
                ++ fields(Entry, syntax(Id, Show)) ++ time(Time));
entry(Entry, _, Id, Index, Show) ->
    [witness_text:pad(io_lib:format("~7b", [Index]), 9), describe(Entry, syntax(Id, Show), Show), $\n].

time(undefined) -> [];
time(Time) -> [{time, Time}].

syntax(Id, #show{syntaxes = Syntaxes}) -> maps:get(Id, Syntaxes, witness_event:syntax([])).

kind(Entry) when is_atom(Entry) -> Entry;
kind(Entry) -> element(1, Entry).

fields({from, From, _}, _) -> [{from, From}];
fields({content, Message}, Syntax) -> [{text, term(Message, Syntax)}];
fields({timeout, _}, _) -> [];
fields({spawn, Child}, _) -> [{child, Child}];
fields({result, MFA, Term}, Syntax) -> [{call, witness_event:format_function(MFA)}, {text, term(Term, Syntax)}];
fields({raise, MFA, Class, Reason}, Syntax) ->
    [{call, witness_event:format_function(MFA)}, {text, term({Class, Reason}, Syntax)}];
fields({named, To}, _) -> [{from, id(To)}];
fields({hash, Hash}, _) -> [{hash, binary:encode_hex(Hash, lowercase)}];
fields({contents, Message}, Syntax) -> [{text, term(Message, Syntax)}];
fields({sent, To, Message}, Syntax) -> [{to, term(To, erlang)}, {text, term(Message, Syntax)}];
fields(waited, _) -> [];
fields({exit, Reason}, Syntax) -> [{text, term(Reason, Syntax)}].

id(0) -> null;
id(Id) -> Id.

describe({from, From, N}, _, Show) -> [~"took ", messages(N), ~" of ", who(From, Show)];
describe({content, Message}, Syntax, _) -> [~"took, from outside: ", short(Message, Syntax)];
describe({timeout, 1}, _, _) -> ~"timed out";
describe({timeout, N}, _, _) -> [~"timed out ", integer_to_binary(N), ~" times"];
describe({spawn, Child}, _, Show) -> [~"spawned ", who(Child, Show)];
describe({result, {erlang, hibernate, _}, Awake}, _, _) -> case Awake of true -> ~"woke up"; _ -> ~"hibernated" end;
describe({result, {erlang, Leave, _}, _}, _, _) when Leave =:= exit; Leave =:= raise -> ~"raises an exit";
describe({result, MFA, Term}, Syntax, _) -> [witness_event:format_function(MFA, Syntax), ~" returned ", short(Term, Syntax)];
describe({raise, MFA, Class, Reason}, Syntax, _) ->
    [witness_event:format_function(MFA, Syntax), ~" raised ", short(Class, Syntax), ~": ", short(Reason, Syntax)];
describe({named, 0}, _, _) -> ~"sent to a name, of a process that is not recorded";
describe({named, To}, _, Show) -> [~"sent to a name, of ", who(To, Show)];
describe({hash, Hash}, _, _) -> [~"  its hash: ", binary:encode_hex(Hash, lowercase)];
describe({contents, Message}, Syntax, _) -> [~"  it was ", short(Message, Syntax)];
describe({sent, To, Message}, Syntax, _) -> [~"sent to ", short(To, Syntax), ~": ", short(Message, Syntax)];
describe(waited, _, _) -> ~"waited for a message, and was ended by a signal";
describe({exit, Reason}, Syntax, _) -> [~"ended: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, Syntax)].

messages(N) -> witness_text:count(N, ~"message", ~"messages").

who(Id, #show{names = Names}) ->
    Pid = case Names of #{Id := {Name, _}} -> Name; #{} -> ~"?" end,
    [Pid, ~" (", integer_to_binary(Id), ~")"].

short(Term, Syntax) -> witness_event:format_term(Term, ?MAX_TERM_CHARS, Syntax).

%% --- sequences -------------------------------------------------------------------

%% A process waits until it is spawned, and until the sender of its next message is spawned. Meanwhile the processes behind it
%% go first. If all processes wait, since the cut part of the recording is missing, the first one goes on.
sequence(Wanted, Known, #show{recording = R, json = Json} = Show) ->
    Parents = #{Id => Parent || #{id := Id, parent := Parent} <- Known},
    Unborn = #{Id => [] || Id := Parent <- Parents, is_map_key(Parent, Parents)},
    Begun = case Json of true -> Show; false -> printed(witness_cli_mermaid:heading(), Show) end,
    witness_log_recording:with_cursors(fun(Cursor) ->
        maybe
            {ok, Cursors} ?= cursors([Id || #{id := Id} <- Known], Cursor, []),
            step(queue:from_list(Cursors), 0, Unborn, Wanted, #{}, Begun)
        end
    end, R).

cursors([Id | Ids], Cursor, Cursors) ->
    case Cursor(Id) of
        {ok, none} -> cursors(Ids, Cursor, Cursors);
        {ok, First} -> cursors(Ids, Cursor, [{Id, fresh, First} | Cursors]);
        {error, _} = Error -> Error
    end;
cursors([], _, Cursors) -> {ok, lists:reverse(Cursors)}.

%% `Waiting': how many processes in a row have just waited. For each process the queue has its next entry.
step(Queue, Waiting, Unborn, Wanted, Drawn, Show) ->
    case queue:out(Queue) of
        {empty, _} ->
            _ = flush(Show),
            ok;
        {{value, {Id, fresh, Cursor}}, Rest} ->
            case witness_log_recording_cursor:next(Cursor) of
                {ok, Entry, Cursor1} -> step(queue:in_r({Id, Entry, Cursor1}, Rest), Waiting, Unborn, Wanted, Drawn, Show);
                done -> step(Rest, 0, Unborn, Wanted, Drawn, Show);
                {error, _} = Error ->
                    _ = flush(Show),
                    Error
            end;
        {{value, {Id, Entry, Cursor} = Process}, Rest} ->
            Waits = is_map_key(Id, Unborn) orelse waits_for_unborn(Entry, Unborn),
            case Waits andalso Waiting =< queue:len(Rest) of
                true -> step(queue:in(Process, Rest), Waiting + 1, Unborn, Wanted, Drawn, Show);
                false ->
                    Unborn1 = case Entry of {spawn, Child} -> maps:remove(Child, Unborn); _ -> Unborn end,
                    {Next, Contents, Cursor1} = with_contents(Entry, Cursor),
                    {Drawn1, Show1} = draw(Id, Entry, Contents, Wanted, Drawn, Show),
                    step(queue:in({Id, Next, Cursor1}, Rest), 0, maps:remove(Id, Unborn1), Wanted, Drawn1, Show1)
            end
    end.

waits_for_unborn({from, From, _}, Unborn) -> is_map_key(From, Unborn);
waits_for_unborn(_, _) -> false.

%% The contents of a message are in the entry after it.
with_contents({from, _, 1}, Cursor) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, {contents, Message}, Cursor1} -> {fresh, {ok, Message}, Cursor1};
        {ok, Other, Cursor1} -> {Other, none, Cursor1};
        _ -> {fresh, none, Cursor}
    end;
with_contents({content, Message}, Cursor) -> {fresh, {ok, Message}, Cursor};
with_contents(_, Cursor) -> {fresh, none, Cursor}.

draw(Id, Entry, Contents, Wanted, Drawn, Show) ->
    case Entry of
        {from, From, N} -> arrow(From, Id, N, Contents, Wanted, Drawn, Show);
        {content, _} -> arrow(0, Id, 1, Contents, Wanted, Drawn, Show);
        _ -> {Drawn, Show}
    end.

arrow(From, To, N, Contents, Wanted, Drawn, Show) ->
    case Wanted =:= all orelse lists:member(From, Wanted) orelse lists:member(To, Wanted) of
        true when Show#show.json ->
            {Drawn, printed(json(message, [{from, id(From)}, {to, To}, {count, N},
                                           {text, case Contents of
                                                {ok, Message} -> term(Message, syntax(To, Show));
                                                none -> null
                                            end}]), Show)};
        true ->
            Label = case Contents of
                {ok, Message} -> witness_event:format_term(Message, ?MAX_LABEL_CHARS, syntax(To, Show));
                none -> messages(N)
            end,
            {Drawn2, Show2} = lists:foldl(fun participant/2, {Drawn, Show}, [From, To]),
            {Drawn2, printed(witness_cli_mermaid:arrow(From, To, Label), Show2)};
        false -> {Drawn, Show}
    end.

participant(Id, {Drawn, Show}) when is_map_key(Id, Drawn) -> {Drawn, Show};
participant(Id, {Drawn, #show{names = Names} = Show}) ->
    {Pid, Signature} = maps:get(Id, Names, {~"?", ~"?"}),
    Name = witness_text:cut([Pid, ~" ", Signature], ?MAX_LABEL_CHARS),
    {Drawn#{Id => []}, printed(witness_cli_mermaid:participant(Id, Name), Show)}.

%% --- output ----------------------------------------------------------------------

printed(Line, #show{held = Held, lines = Lines} = Show) when Lines < ?BATCH_LINES ->
    Show#show{held = [Line | Held], lines = Lines + 1};
printed(Line, #show{held = Held} = Show) -> flush(Show#show{held = [Line | Held]}).

flush(#show{out = Out, held = Held} = Show) ->
    ok = witness_cli_io:print(Out, lists:reverse(Held)),
    receive
        output_closed -> throw(output_closed)
    after 0 -> Show#show{held = [], lines = 0}
    end.

json(Type, Fields) -> [json:encode({[{v, 1}, {type, Type} | Fields]}, fun encode/2), $\n].

%% Objects are lists of pairs in a tuple, which keeps the order of their fields.
encode({Pairs}, Encode) -> json:encode_key_value_list(Pairs, Encode);
encode(Value, Encode) -> json:encode_value(Value, Encode).

term(Term, Syntax) -> witness_event:format_term(Term, ?MAX_JSON_CHARS, Syntax).

text(null) -> null;
text(Text) when is_binary(Text) -> witness_text:clean(Text);
text(Term) -> term(Term, erlang).
