-module(witness_remote_guard).
-moduledoc """
The part of an attachment that runs at the target: starts the run, owns it, and reports its results to the tool.

No backlog can grow here. A verdict is sent only if two conditions hold: fewer than a window of verdicts are
unacknowledged by the tool, and the connection takes it at once. The others are counted, and the count is sent with the
summary. The summary is always sent; it counts every verdict.

When the guard ends, however it ends, its cleaner removes all that was loaded (`m:witness_remote_cleaner`). The guard ends with
its run, and with its cleaner.
""".

-export([init/3]).

-export_type([config/0]).

-doc """
The input from the tool: its process, the tag of all messages, the options of the run as a user gives them, the compiled
specifications, and the modules, by the names that they have here.
""".
-type config() :: #{tool := pid(), tag := reference(), options := map(),
                    specs := [map()], modules := [module()]}.

%% Window: verdicts on their way to the tool, or not printed there yet.
-define(MAX_UNREAD, 256).

-define(UNREAD_INDEX, 1).
-define(MISSED_INDEX, 2).

-record(guard, {watch :: reference(),
                tool :: pid(),
                tag :: reference(),
                run :: pid(),
                redact :: boolean(),
                counts :: atomics:atomics_ref(),
                requests :: gen_server:request_id_collection()}).

-doc false.
-spec init(Cleaner :: pid(), Spare :: pid(), config()) -> ok.
init(Cleaner, Spare, #{tool := Tool, tag := Tag, options := Given, specs := Specs, modules := Modules}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_remote_guard),
    Watch = monitor(process, Cleaner),
    Counts = atomics:new(2, []),
    Self = self(),
    Options = Given#{source => evm, log => false, max_verdicts => 0, unobserved => [Cleaner, Spare],
                     on_verdict => fun(Verdict) -> report_verdict(Verdict, Self, Counts) end},
    maybe
        {ok, Checked} ?= witness_options:check(Options),
        {ok, Run} ?= witness_run:start(Checked#{specs := Specs, modules => Modules}),
        ok ?= witness_run:await_begin(Run),
        Tool ! {Tag, running, witness_run:info(Run)},
        Requests = gen_server:reqids_add(gen_server:send_request(Run, await), await, gen_server:reqids_new()),
        loop(#guard{watch = Watch, tool = Tool, tag = Tag, run = Run, redact = maps:get(redact, Checked),
                    counts = Counts, requests = Requests})
    else
        {error, Reason} -> report_refusal(Reason, Tool, Tag)
    end.

report_refusal(Reason, Tool, Tag) ->
    Tool ! {Tag, refused, Reason},
    ok.

%% The run calls it, one verdict at a time.
report_verdict(Verdict, Guard, Counts) ->
    case atomics:add_get(Counts, ?UNREAD_INDEX, 1) of
        Unread when Unread =< ?MAX_UNREAD -> Guard ! {verdict, Verdict};
        _ -> count_missed(Counts)
    end.

count_missed(Counts) ->
    atomics:sub(Counts, ?UNREAD_INDEX, 1),
    atomics:add(Counts, ?MISSED_INDEX, 1).

loop(G = #guard{watch = Watch, tool = Tool, tag = Tag, run = Run, counts = Counts, requests = Requests}) ->
    receive
        {verdict, Verdict} ->
            _ = erlang:send(Tool, {Tag, verdict, Verdict}, [nosuspend, noconnect]) =:= ok orelse count_missed(Counts),
            loop(G);
        {Tag, read} ->
            atomics:sub(Counts, ?UNREAD_INDEX, 1),
            loop(G);
        {Tag, stop} ->
            loop(G#guard{requests = gen_server:reqids_add(gen_server:send_request(Run, stop), stop, Requests)});
        {Tag, info, Asked} ->
            Request = gen_server:send_request(Run, info),
            loop(G#guard{requests = gen_server:reqids_add(Request, {info, Asked}, Requests)});
        {'DOWN', Watch, process, _, _} -> exit(shutdown);
        Message ->
            case gen_server:check_response(Message, Requests, true) of
                {{reply, Info}, {info, Asked}, Others} ->
                    Tool ! {Tag, info, Asked, Info},
                    loop(G#guard{requests = Others});
                {{reply, {ok, Summary}}, _, _} -> finish(Summary, G);
                {{error, {Reason, _}}, _, _} -> exit({run_died, redact(Reason, G)});
                _ -> loop(G)
            end
    end.

%% The run redacts everything else that the guard sends.
redact(Reason, #guard{redact = true}) -> witness_event_redact:term(Reason);
redact(Reason, _) -> Reason.

%% Earlier verdicts are in the mailbox.
finish(Summary, G = #guard{tool = Tool, tag = Tag, run = Run, counts = Counts}) ->
    receive
        {verdict, Verdict} ->
            _ = erlang:send(Tool, {Tag, verdict, Verdict}, [nosuspend, noconnect]) =:= ok orelse count_missed(Counts),
            finish(Summary, G)
    after 0 ->
        _ = witness_run:stop(Run),
        Tool ! {Tag, summary, Summary, atomics:get(Counts, ?MISSED_INDEX)},
        ok
    end.
