-module(witness_search_process).
-moduledoc """
What a controlled process knows of itself, in its dictionary, and how it talks to the scheduler (`m:witness_search_scheduler`).

*Invariant:* at most one controlled process runs at a time. A process sends its next operation and waits until it is chosen
(`perform/1`); a question that no other process can notice is answered at once (`query/1`). Its mailbox of this VM has only the answers
of the scheduler, and messages from outside.

Any other process is outside: what it does passes through.
""".

-export([key/0, current/0, begin_control/3, pid/1, perform/2, query/2, refuse/2, log/2, report/2, returns/2, outside/3, arrivals/1,
         expect/1, aliases/0, keep_alias/2, fault/3, protect/1, is_protected/1]).

-export_type([control/0]).

%% The key of the recorder, so that a dictionary has the same order when a recording is replayed.
-define(KEY, '$witness_record').

%% expects: something may come from outside. asked: how many messages of the process ask for an answer that has not come.
%% aliases: those of the program that processes outside have, with the aliases of this VM that they have got.
-record(control, {id :: pos_integer(), pid :: pid(), scheduler :: pid(), logging :: boolean(), expects = false :: boolean(),
                  asked = 0 :: non_neg_integer(), aliases = #{} :: #{Virtual :: reference() => Real :: reference()}}).

-opaque control() :: #control{}.

-doc "The key under which the dictionary of a process has its state.".
-spec key() -> atom().
key() -> ?KEY.

-doc "The state of the caller. `none`: it is outside.".
-spec current() -> control() | none.
current() ->
    case get(?KEY) of
        #control{} = C -> C;
        _ -> none
    end.

-doc "The caller is controlled from now on.".
-spec begin_control({pos_integer(), pid()}, Scheduler :: pid(), Logging :: boolean()) -> ok.
begin_control({Id, Pid}, Scheduler, Logging) ->
    _ = put(?KEY, #control{id = Id, pid = Pid, scheduler = Scheduler, logging = Logging}),
    ok.

-spec pid(control()) -> pid().
pid(#control{pid = Pid}) -> Pid.

-doc "Waits until the process is chosen, and its operation is performed. The result is that of `m:witness_search_world`.".
-spec perform(witness_search_world:operation(), control()) -> term().
perform(Operation, #control{id = Id, scheduler = Scheduler}) ->
    Scheduler ! {parks, Id, Operation},
    answer().

answer() -> receive {witness_search, Answer} -> Answer end.

-doc "Asks the world.".
-spec query(term(), control()) -> term().
query(Question, #control{id = Id, scheduler = Scheduler}) ->
    Scheduler ! {asks, Id, Question},
    answer().

-doc "The process calls a function that cannot be controlled: the run ends.".
-spec refuse(mfa(), control()) -> no_return().
refuse(Function, C) ->
    perform({refuse, Function}, C),
    exit(kill).

-doc "These processes are those of the VM, which the program may not end.".
-spec protect([pid()]) -> ok.
protect(Pids) -> persistent_term:put(?MODULE, maps:from_keys(Pids, [])).

-spec is_protected(term()) -> boolean().
is_protected(Pid) -> is_map_key(Pid, persistent_term:get(?MODULE, #{})).

-doc "An entry for the recording of this run.".
-spec log(term(), control()) -> ok.
log(_, #control{logging = false}) -> ok;
log(Entry, #control{id = Id, scheduler = Scheduler}) ->
    Scheduler ! {logs, Id, Entry},
    ok.

-doc "A call or a return, for the monitors.".
-spec report(witness_search_events:report(), control()) -> ok.
report(What, #control{id = Id, scheduler = Scheduler}) ->
    Scheduler ! {reports, Id, What},
    ok.

-doc "The function of the process returns this value. Only that of the run is of interest.".
-spec returns(term(), control()) -> ok.
returns(Value, #control{id = 1, scheduler = Scheduler}) ->
    Scheduler ! {returns, 1, Value},
    ok;
returns(_, _) -> ok.

-doc "The run is not a function of its schedule from here on.".
-spec fault(Kind :: atom(), term(), control()) -> ok.
fault(Kind, What, #control{id = Id, scheduler = Scheduler}) ->
    Scheduler ! {unfaithful, Id, {Kind, What}},
    ok.

-doc "Calls a function outside: nothing in it is a step of the process.".
-spec outside(module(), atom(), [term()]) -> term().
outside(Module, Function, Args) ->
    Control = put(?KEY, outside),
    try
        apply(Module, Function, Args)
    after
        put(?KEY, Control)
    end.

-doc "The process may get a message from outside, or an answer: then it has sent a message that asks for one.".
-spec expect(message | answer) -> ok.
expect(What) ->
    #control{asked = Asked} = C = get(?KEY),
    _ = put(?KEY, C#control{expects = true, asked = case What of answer -> Asked + 1; message -> Asked end}),
    ok.

-doc "The aliases that the process has given to processes outside.".
-spec aliases() -> #{Virtual :: reference() => Real :: reference()}.
aliases() -> (get(?KEY))#control.aliases.

-spec keep_alias(Virtual :: reference(), Real :: reference()) -> ok.
keep_alias(Virtual, Real) ->
    #control{aliases = Aliases} = C = get(?KEY),
    _ = put(?KEY, C#control{aliases = Aliases#{Virtual => Real}}),
    ok.

-doc """
Messages from outside that are there. If the process expects some and there is none, it waits so many milliseconds for the first one; and as
long for the answer to each message that asks for one.
""".
-spec arrivals(non_neg_integer()) -> [term()].
arrivals(Time) ->
    case get(?KEY) of
        #control{expects = false} -> [];
        #control{} -> take_arrivals(Time, Time)
    end.

take_arrivals(Wait, Time) ->
    receive
        %% The program gets these from the world.
        {'ETS-TRANSFER', _, _, _} -> take_arrivals(Wait, Time);
        Message ->
            #control{asked = Asked} = C = get(?KEY),
            _ = put(?KEY, C#control{asked = max(0, Asked - 1)}),
            [Message | take_arrivals(case Asked > 1 of true -> Time; false -> 0 end, Time)]
    after Wait ->
        _ = put(?KEY, (get(?KEY))#control{expects = false, asked = 0}),
        []
    end.
