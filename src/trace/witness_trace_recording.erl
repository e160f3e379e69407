-module(witness_trace_recording).
-moduledoc """
Reads the events of a recording (`m:witness_log_recording_events`) in parallel with the process that uses them, as
`m:witness_trace_feed` reads those of a log: it is asked for blocks in the same way, and sends the same messages.

The events are numbered from 1 in the order of delivery; these numbers count as their lines. Each block has the `places` of
its events, for people: the process and its entry, as `witness log` shows them.
""".

-export([open/2, fold/3, run/3, signatures/3]).

-export_type([events/0]).

-doc """
Folds over events with their places. `End`: the time up to which nothing more has happened, if it is known. An error is text for people;
what came before it stands.
""".
-type events() :: fun((fun((witness_event:item(), witness_log_recording_events:place(), Acc) -> Acc), Acc) ->
                          {ok, Acc, End :: none | integer()} | {error, unicode:chardata(), Acc}).

-doc "Opens a recording, if its events can be read. An error is text for people.".
-spec open(file:name_all(), #{max_atoms => pos_integer(), signatures => [witness_event_wrapper:row()], _ => _}) ->
    {ok, witness_log_recording:recording()} | {error, unicode:chardata()}.
open(Dir, Options) ->
    case witness_log_recording:open(Dir, maps:with([max_atoms, signatures], Options)) of
        {ok, R} ->
            case witness_log_recording_events:check(R) of
                ok -> {ok, R};
                {error, Text} -> {error, [name(Dir), ~": ", Text]}
            end;
        {error, {Module, Reason}} -> {error, Module:format_error(Reason)}
    end.

name(Dir) -> unicode:characters_to_binary(Dir).

-doc "The events of a recording.".
-spec fold(fun((witness_event:item(), witness_log_recording_events:place(), Acc) -> Acc), Acc, witness_log_recording:recording()) ->
    {ok, Acc, End :: none | integer()} | {error, unicode:chardata(), Acc}.
fold(Fun, Acc, R) ->
    case witness_log_recording_events:fold(Fun, Acc, R) of
        {ok, Acc1} -> {ok, Acc1, witness_log_recording:ended_at(R)};
        Error -> Error
    end.

-doc "The signatures of these processes of a recording, as far as it has them.".
-spec signatures(file:name_all(), [witness_event:proc()], #{signatures => [witness_event_wrapper:row()], _ => _}) ->
    #{witness_event:proc() => witness_event:signature() | mfa()}.
signatures(Dir, Pids, Options) ->
    Wanted = maps:from_keys(Pids, []),
    Folded = maybe
        {ok, R} ?= witness_log_recording:open(Dir, maps:with([signatures], Options)),
        {ok, Born} ?= witness_log_recording:fold_processes(fun
            ({birth, #{id := Id, pid := Pid} = Birth}, Found) when is_map_key(Pid, Wanted) -> Found#{Id => Birth};
            ({signature, Id, Called}, Found) when is_map_key(Id, Found) -> Found#{Id := (map_get(Id, Found))#{called => Called}};
            (_, Found) -> Found
        end, #{}, R),
        {ok, [{Pid, witness_log_recording:signature(Birth, R)} || #{pid := Pid} = Birth <- maps:values(Born)]}
    end,
    case Folded of
        {ok, Known} -> maps:from_list([Pair || {_, Signature} = Pair <- Known, Signature =/= undefined]);
        {error, _} -> #{}
    end.

%% events: of the block so far, newest first. total: of all.
-record(feed, {consumer :: pid(),
               wanted = 0 :: non_neg_integer(),
               number = 1 :: pos_integer(),
               events = [] :: [{pos_integer(), witness_event:item()}],
               places = [] :: [witness_log_recording_events:place()],
               size = 0 :: non_neg_integer(),
               total = 0 :: non_neg_integer()}).

%% Events of a block.
-define(BLOCK_EVENTS, 1_000).

-doc "Sends blocks of events to the consumer, which asks for them, until there are no more.".
-spec run(file:name_all(), events(), pid()) -> ok.
run(Dir, Events, Consumer) ->
    F = wait_for_request(#feed{consumer = Consumer}),
    case Events(fun add_event/3, F) of
        {ok, F1, End} -> send(eof, send_end(End, send_block(F1)));
        {error, Text, F1} -> send({error, put_name(Dir, Text)}, send_block(F1))
    end.

send_end(none, F) -> F;
send_end(Time, #feed{number = Number} = F) ->
    ok = send({clock, Time}, F),
    F#feed{number = Number + 1}.

%% An error about damage names the file.
put_name(Dir, Text) ->
    case string:prefix(Text, name(Dir)) of
        nomatch -> [name(Dir), ~": ", Text];
        _ -> Text
    end.

add_event(Event, Place, #feed{events = Events, places = Places, size = Size, total = Total} = F) ->
    F1 = F#feed{events = [{Size + 1, Event} | Events], places = [Place | Places], size = Size + 1, total = Total + 1},
    case Size + 1 of
        ?BLOCK_EVENTS -> send_block(F1);
        _ -> F1
    end.

send_block(#feed{size = 0} = F) -> F;
send_block(#feed{events = Events, places = Places, size = Size, total = Total, number = Number} = F0) ->
    F = wait_for_request(F0),
    send({block, #{items => lists:reverse(Events), lines => Size, skipped => 0, malformed => [],
                   places => list_to_tuple(lists:reverse(Places))}, #{lines => Total}}, F),
    F#feed{events = [], places = [], size = 0, number = Number + 1, wanted = F#feed.wanted - 1}.

wait_for_request(#feed{wanted = 0} = F) ->
    receive
        {more, Count} -> F#feed{wanted = Count};
        {system, From, Request} -> witness_event_process:system(Request, From, fun wait_for_request/1, F)
    end;
wait_for_request(#feed{wanted = Wanted} = F) ->
    receive
        {more, Count} -> F#feed{wanted = Wanted + Count}
    after 0 -> F
    end.

send(What, #feed{consumer = Consumer, number = Number}) ->
    Consumer ! {witness_feed, Number, What},
    ok.
