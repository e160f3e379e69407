-module(witness_run_names_SUITE).
-moduledoc """
What processes are called in the explanation of a violation that have ended before it: over each source, in logs of such runs, and
inline. No monitor reads these processes.
""".
-behaviour(gen_server).
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, native}, {group, evm}, replies_of_a_log_go_to_the_caller, inline_replies_go_to_the_caller].

groups() ->
    Both = [senders_that_have_ended_have_names, replies_go_to_the_caller, a_name_outlives_many_births,
            senders_of_a_log_have_their_modules],
    [{native, [], Both}, {evm, [], Both}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(witness),
    [{level, Before} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

senders_that_have_ended_have_names(Config) ->
    Expected = [~"cashier", ~"lists", ~"witness_run_names_SUITE", ~"witness_run_names_SUITE", ~"witness_run_names_SUITE"],
    [?assertEqual({Instrument, Expected}, {Instrument, senders(violation(senders, over(Instrument, Config)))})
     || Instrument <- [outline, central]].

%% The registered process is older than many others; the table of births has 16,384 places.
a_name_outlives_many_births(Config) ->
    ?assertEqual([~"cashier"], senders(violation(old_name, over(outline, Config)))).

senders_of_a_log_have_their_modules(Config) ->
    Modules = [~"lists" | lists:duplicate(4, ~"witness_run_names_SUITE")],
    ?assertEqual(Modules, senders(logged(senders, Config))).

replies_go_to_the_caller(Config) ->
    [?assertMatch({Instrument, [{_, _, ~"reply(_, -1)"}], [_, ~"till_client"]},
                  {Instrument, Arrows, Titles})
     || Instrument <- [outline, central], {Arrows, Titles} <- [arrows(violation(reply, over(Instrument, Config)))]].

%% The alias is that of `<0.86.0>', whatever the numbers of processes are by now.
replies_of_a_log_go_to_the_caller(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "reply.log"),
    Alias = "#Ref<0.0.11011.691054568.2460024833.85647>",
    ok = file:write_file(File, ["init(<0.80.0>,_,{shop,main,[]})\n",
                                "fork(<0.80.0>,<0.85.0>,{witness_run_names_SUITE,init,[[]]})\n",
                                "init(<0.85.0>,<0.80.0>,{witness_run_names_SUITE,init,[[]]})\n",
                                "fork(<0.80.0>,<0.86.0>,{shop,client,[<0.85.0>]})\n",
                                "init(<0.86.0>,<0.80.0>,{shop,client,[<0.85.0>]})\n",
                                "send(<0.85.0>,", Alias, ",{[alias|", Alias, "],-1})\n"]),
    #{verdict := no} = Verdict = verdict(#{system => {log, {file, File}}, log => false, specs => specs(Config)}),
    ?assertEqual({[{0, 1, ~"reply(_, -1)"}], [~"witness_run_names_SUITE", ~"shop"]}, arrows(Verdict)).

inline_replies_go_to_the_caller(Config) ->
    #{steps := [#{event := {send, _, Alias, _, _}}], aliases := Aliases} = violation(reply, over(inline, Config)),
    ?assertMatch(#{Alias := Client} when is_pid(Client), Aliases).

%% --- runs and their charts -------------------------------------------------------

over(Instrument, Config) -> [{instrument, Instrument} | Config].

violation(System, Config) ->
    #{verdict := no} = Verdict = verdict((options(System, Config))#{specs => specs(Config)}),
    Verdict.

options(System, Config) ->
    #{system => {?MODULE, main, [System]}, instrument => proplists:get_value(instrument, Config, outline),
      source => proplists:get_value(source, Config, native), log => false}.

verdict(Options) ->
    {ok, Run} = witness:start(Options),
    {ok, _} = witness:await(Run, 60_000),
    [Verdict] = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    Verdict.

logged(System, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([System, ".log"])),
    {ok, Run} = witness:start((options(System, Config))#{log_file => File}),
    {ok, _} = witness:await(Run, 60_000),
    {ok, _} = witness:stop(Run),
    #{verdict := no} = Verdict = verdict(#{system => {log, {file, File}}, log => false, specs => specs(Config)}),
    Verdict.

specs(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "names.hml"),
    ok = file:write_file(File, ["server: with witness_run_names_SUITE:init(_)\n",
                                "over _ ? hello, _ ? bad, _ : _ ! reply(_, _)\n",
                                "monitor max X.([_ ? hello] X and [_ ? bad] ff\n",
                                "                and [_ : _ ! reply(_, P) when P < 0] ff).\n"]),
    [File].

%% What the senders of `hello' are called.
senders(#{steps := Steps, names := Names}) ->
    lists:sort([maps:get(From, Names, none) || #{event := {recv, _, From, hello, _}} <- Steps]).

arrows(#{steps := Steps} = Verdict) ->
    {Lanes, Arrows} = witness_text_chart:sequence(Steps, witness_text_verdict:known(Verdict)),
    {[{From, To, Text} || #{from := From, to := To, text := Text} <- Arrows], [Title || #{title := Title} <- Lanes]}.

%% --- systems ---------------------------------------------------------------------

main(senders) ->
    Server = start(),
    lists:foreach(fun(Start) ->
        Ref = monitor(process, Start(Server)),
        receive {'DOWN', Ref, process, _, _} -> ok end
    end, [fun(S) -> spawn(?MODULE, hello, [S]) end, fun(S) -> proc_lib:spawn(?MODULE, hello, [S]) end,
          fun(S) -> spawn(fun() -> hello(S) end) end,
          fun(S) -> spawn(lists, foreach, [fun(_) -> S ! hello end, [1]]) end,
          fun(S) -> spawn(fun() -> register(cashier, self()), hello(S) end) end]),
    stop(Server);
main(old_name) ->
    Server = start(),
    {Cashier, Ref} = spawn_monitor(fun() -> register(cashier, self()), receive go -> hello(Server) end end),
    births(20_000),
    Cashier ! go,
    receive {'DOWN', Ref, process, _, _} -> ok end,
    stop(Server);
main(reply) ->
    Server = start(),
    {Client, Ref} = spawn_monitor(?MODULE, client, [Server]),
    receive {'DOWN', Ref, process, Client, _} -> ok end,
    gen_server:stop(Server).

births(0) -> ok;
births(N) ->
    {_, Ref} = spawn_monitor(?MODULE, nothing, []),
    receive {'DOWN', Ref, process, _, _} -> births(N - 1) end.

nothing() -> ok.

start() -> {ok, Server} = gen_server:start(?MODULE, [], []), Server.

stop(Server) ->
    Server ! bad,
    gen_server:stop(Server).

hello(Server) -> Server ! hello.

client(Server) ->
    true = register(till_client, self()),
    gen_server:call(Server, price).

init([]) -> {ok, 0}.

handle_call(price, _, State) -> {reply, -1, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info(_, State) -> {noreply, State}.
