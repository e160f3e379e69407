-module(witness_step_live).
-moduledoc """
A replay in which each process has stopped at one point of a run. The processes themselves report what the trace does not have,
such as the state of a server (`m:witness_replay_breakpoint`).

To go forward, processes get higher limits. To go back, the VM is ended, and another one replays up to that point. The replay
belongs to the process that has opened it, and ends with it.
""".

-export([new/1, ask/3, close/1]).

-export_type([live/0, answer/0]).

-record(live, {options :: witness_replay:options(),
               vm = none :: none | {port(), file:filename()},
               limits = #{} :: limits()}).

-opaque live() :: #live{}.

-type limits() :: #{pos_integer() => non_neg_integer() | infinity}.

-doc """
`{ok, State}`: the state of an OTP behaviour. Otherwise where the process is: `in_receive` in its own receive, `elsewhere` in a
call, or `running` if it did not stop in time; with its stack, and with the VM's text of the stack, which has the values on it.
""".
-type answer() :: {ok, term()} | {in_receive | elsewhere | running, Stack :: [tuple()], Backtrace :: binary()}.

%% Milliseconds: the time for a process to get there, and the time for a stopped one to answer.
-define(PATIENCE, 30_000).
-define(LOOK, 5_000).

-doc "Does not start a replay before the first question.".
-spec new(witness_replay:options()) -> live().
new(Options) -> #live{options = Options}.

-doc "Asks a process, after each process has passed so many entries of its log (`infinity`: all).".
-spec ask(pos_integer(), limits(), live()) -> {{ok, answer()} | {error, unicode:chardata()}, live()}.
ask(Id, Limits, Live) ->
    case reached(Limits, Live) of
        {ok, #live{vm = {Port, _}} = There} ->
            case asked({ask, make_ref(), Id}, Port, ?PATIENCE) of
                {ok, Answer} -> {{ok, Answer}, There};
                %% The process is busy. Its later answer is not wanted, so this replay is closed.
                timeout ->
                    Looked = asked({look, make_ref(), Id}, Port, ?LOOK),
                    {case Looked of timeout -> {error, ~"the VM of the replay does not answer"}; _ -> Looked end, closed(There)};
                {error, _} = Error -> {Error, closed(There)}
            end;
        {error, Reason} -> {{error, witness_replay:format_error(Reason)}, Live}
    end.

reached(Limits, #live{vm = {Port, _}, limits = Before} = Live) ->
    case maps:fold(fun(Id, Limit, Forward) -> Forward andalso maps:get(Id, Limits, 0) >= Limit end, true, Before) of
        true ->
            true = port_command(Port, term_to_binary({limits, Limits})),
            {ok, Live#live{limits = Limits}};
        false -> reached(Limits, closed(Live))
    end;
reached(Limits, #live{vm = none, options = Options} = Live) ->
    case witness_replay:stopped(Limits, Options) of
        {ok, Port, Dir} -> {ok, Live#live{vm = {Port, Dir}, limits = Limits}};
        {error, _} = Error -> Error
    end.

asked({_, Ref, _} = Question, Port, Time) ->
    true = port_command(Port, term_to_binary(Question)),
    answered(Ref, Port, Time).

answered(Ref, Port, Time) ->
    receive
        {Port, {data, Data}} ->
            case witness_event_external:decode(Data) of
                {answer, Ref, none} -> {error, ~"it does not live in the replay"};
                {answer, Ref, Answer} -> {ok, Answer};
                {answer, _, _} -> answered(Ref, Port, Time);
                _ -> {error, ~"the replay has ended before it was there"}
            end;
        {Port, {exit_status, _}} -> {error, ~"the VM of the replay has ended"}
    after Time -> timeout
    end.

-doc "Ends the replay and removes its files.".
-spec close(live()) -> ok.
close(Live) ->
    _ = closed(Live),
    ok.

closed(#live{vm = none} = Live) -> Live;
closed(#live{vm = {Port, Dir}} = Live) ->
    try port_close(Port) catch error:badarg -> true end,
    flushed(Port),
    _ = file:del_dir_r(Dir),
    Live#live{vm = none, limits = #{}}.

flushed(Port) -> receive {Port, _} -> flushed(Port) after 0 -> ok end.
