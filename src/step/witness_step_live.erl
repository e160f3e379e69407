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
-define(MOVE_TIMEOUT_MS, 30_000).
-define(ANSWER_TIMEOUT_MS, 5_000).

-doc "Does not start a replay before the first question.".
-spec new(witness_replay:options()) -> live().
new(Options) -> #live{options = Options}.

-doc "Asks a process, after each process has passed so many entries of its log (`infinity`: all).".
-spec ask(pos_integer(), limits(), live()) -> {{ok, answer()} | {error, unicode:chardata()}, live()}.
ask(Id, Limits, Live) ->
    case advance(Limits, Live) of
        {ok, #live{vm = {Port, _}} = There} ->
            case request({ask, make_ref(), Id}, Port, ?MOVE_TIMEOUT_MS) of
                {ok, Answer} -> {{ok, Answer}, There};
                %% The process is busy. Its later answer is not wanted, so this replay is closed.
                timeout ->
                    Looked = request({look, make_ref(), Id}, Port, ?ANSWER_TIMEOUT_MS),
                    {case Looked of timeout -> {error, ~"the VM of the replay does not answer"}; _ -> Looked end,
                     close_vm(There)};
                {error, _} = Error -> {Error, close_vm(There)}
            end;
        {error, {Module, Reason}} -> {{error, Module:format_error(Reason)}, Live}
    end.

advance(Limits, #live{vm = {Port, _}, limits = Before} = Live) ->
    case maps:fold(fun(Id, Limit, Forward) -> Forward andalso maps:get(Id, Limits, 0) >= Limit end, true, Before) of
        true ->
            true = port_command(Port, term_to_binary({limits, Limits})),
            {ok, Live#live{limits = Limits}};
        false -> advance(Limits, close_vm(Live))
    end;
advance(Limits, #live{vm = none, options = Options} = Live) ->
    case witness_replay:start_stopped(Limits, Options) of
        {ok, Port, Dir} -> {ok, Live#live{vm = {Port, Dir}, limits = Limits}};
        {error, _} = Error -> Error
    end.

request({_, Ref, _} = Question, Port, Time) ->
    true = port_command(Port, term_to_binary(Question)),
    wait_for_answer(Ref, Port, Time).

wait_for_answer(Ref, Port, Time) ->
    receive
        {Port, {data, Data}} ->
            case witness_event_external:decode(Data) of
                {answer, Ref, none} -> {error, ~"it does not live in the replay"};
                {answer, Ref, Answer} -> {ok, Answer};
                {answer, _, _} -> wait_for_answer(Ref, Port, Time);
                _ -> {error, ~"the replay has ended before it was there"}
            end;
        {Port, {exit_status, _}} -> {error, ~"the VM of the replay has ended"}
    after Time -> timeout
    end.

-doc "Ends the replay and removes its files.".
-spec close(live()) -> ok.
close(Live) ->
    _ = close_vm(Live),
    ok.

close_vm(#live{vm = none} = Live) -> Live;
close_vm(#live{vm = {Port, Dir}} = Live) ->
    try port_close(Port) catch error:badarg -> true end,
    flush(Port),
    _ = file:del_dir_r(Dir),
    Live#live{vm = none, limits = #{}}.

flush(Port) -> receive {Port, _} -> flush(Port) after 0 -> ok end.
