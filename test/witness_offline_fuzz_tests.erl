%% Whole logs with some of their lines changed, missing, repeated or in another place, in both formats, up to the verdicts:
%% each is refused with its line, or every monitor that was started comes to exactly one end, and no tracer keeps anything
%% of a process that has ended.
%%
%% `WITNESS_LOG_FUZZ_INPUTS` is the number of inputs for each format (5,000 unless told), `WITNESS_FUZZ_SEED` a number from
%% which all of them follow. A failure names the seed and the number of its input: `input(Format, Seed, Number)`.
-module(witness_offline_fuzz_tests).
-include_lib("eunit/include/eunit.hrl").
-import(witness_setting, [number/2]).
-export([input/3]).

-define(INPUTS, 5_000).
-define(SEED, 1).
-define(SPEC, "answers: with m:worker(_) group per N over _ ? {ask, N}, _ : _ ! {told, N}\n"
              "monitor [_ ? _] [_ ? _] ff.\n"
              "order: with m:worker(_)\n"
              "check [_ <- _, _] max X.([_ ? {ask, N}] <_ : _ ! {told, M} when M =:= N> X and [_ ** R when R =/= normal] ff).\n").

text_comes_to_an_end_test_() -> fuzzed(text).
json_comes_to_an_end_test_() -> fuzzed(json).

fuzzed(Format) ->
    Inputs = number("WITNESS_LOG_FUZZ_INPUTS", ?INPUTS),
    Seed = number("WITNESS_FUZZ_SEED", ?SEED),
    {timeout, 60 + Inputs div 20, fun() ->
        {ok, Map} = compiled(),
        try
            Ends = [attempted(Format, Map, Seed, Number) || Number <- lists:seq(1, Inputs)],
            %% All kinds of ends are reached.
            [?assert(length([End || End <- Ends, End =:= Kind]) > Inputs div Share)
             || {Kind, Share} <- [{malformed, 10}, {refused, 10}, {orphans, 500}, {whole, 10}]]
        after
            witness_spec:unload(Map)
        end
    end}.

compiled() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_offline_fuzz." ++ os:getpid() ++ ".hml"),
    ok = file:write_file(File, ?SPEC),
    {ok, Map, _} = witness_spec:compile_file(File, #{}),
    ok = file:delete(File),
    {ok, Map}.

attempted(Format, Map, Seed, Number) ->
    Input = input(Format, Seed, Number),
    try
        attempt(witness_log:parse(Input, witness_log:parser(#{format => Format})), Map)
    catch
        Class:Reason:Stack ->
            ?debugFmt("~nseed ~b, input ~b of ~p:~n~ts~n~p~n", [Seed, Number, Format, Input, {Class, Reason, Stack}]),
            error({Seed, Number})
    end.

attempt(#{malformed := [{Line, Column, What}], lines := Lines}, _) ->
    true = Line =< Lines andalso Column > 0 andalso iolist_size(What) > 0,
    malformed;
attempt(#{items := Items, lines := Lines, malformed := []}, Map = #{module := Module}) ->
    Entries = entries(Map),
    Instrumentation = fun(Signature) -> [lists:nth(I, Entries) || I <- Module:match(Signature)] end,
    New = witness_offline_core:new(#{maps => [Instrumentation], properties => Entries, mode => outline, spread => 1,
                                    roots => auto, waiting => 10, window => 20}),
    {End, Log} = case witness_offline_core:items(Items, 0, New) of
        {ok, Log0} ->
            case witness_offline_core:finish(Lines, Log0) of
                {[], Log1} -> {whole, Log1};
                {[_ | _], Log1} -> {orphans, Log1}
            end;
        {refused, Line, What, _, Log0} ->
            true = Line =< Lines andalso iolist_size(What) > 0,
            {refused, witness_offline_core:stop(Line, Log0)}
    end,
    {#{operations := Operations, started := Started}, _} = witness_offline_core:take(Log),
    Ended = lists:append([ended(witness_offline_core:property(Shard, Log), Of) || Shard := Of <- Operations]),
    ?assertEqual(lists:sort([Id || {Id, _, _} <- Started]), lists:sort(Ended)),
    End.

entries(#{module := Module, entries := Entries}) ->
    [#{monitor => {Module, I}, spec => ~"s", name => Name, group => Group}
     || #{index := I, name := Name, group := Group} <- Entries].

%% The monitors of a shard that have come to an end.
ended(#{monitor := Monitor}, Operations) ->
    Shard = witness_offline_shard:start_link(#{monitor => Monitor, explain => 3}),
    ok = witness_offline_shard:work(Shard, 1, Operations, self()),
    Told = receive {worked, 1, Shard, Answer, _, _} -> Answer end,
    {_, []} = witness_offline_shard:save(Shard),
    unlink(Shard),
    exit(Shard, kill),
    [Id || {_, Id, verdict, _} <- Told].

%% Inputs

input(Format, Seed, Number) ->
    _ = rand:seed(exsss, {Seed, Number, byte_size(atom_to_binary(Format))}),
    Lines = [iolist_to_binary(witness_log:line(Item, Format)) || Item <- items(rand:uniform(4))],
    iolist_to_binary(lists:foldl(fun(_, L) -> changed(rand:uniform(12), L) end, Lines, lists:seq(1, rand:uniform(4) - 1))).

items(Workers) ->
    Root = list_to_pid("<0.1.0>"),
    [{functions, [{m, f, 1}]}, {init, Root, undefined, {m, main, []}, undefined}]
        ++ lists:append([worker(list_to_pid("<0." ++ integer_to_list(10 + W) ++ ".0>"), Root) || W <- lists:seq(1, Workers)])
        ++ [{exit, Root, normal, undefined}].

worker(W, Root) ->
    Signature = {m, worker, [W]},
    [{fork, Root, W, Signature, undefined}, {init, W, Root, Signature, undefined}]
        ++ lists:append([[{recv, W, Root, {ask, N}, undefined}, {call, W, {m, f, [N]}, undefined},
                          {return, W, {m, f, 1}, N, undefined}, {send, W, Root, {told, N}, undefined}]
                         || N <- lists:seq(1, rand:uniform(3))])
        ++ [{exit, W, normal, undefined}].

changed(_, []) -> [];
changed(1, Lines) -> lists:delete(one(Lines), Lines);
changed(2, Lines) -> Line = one(Lines), lists:append([case L of Line -> [L, L]; _ -> [L] end || L <- Lines]);
changed(3, Lines) -> [byte_changed(one(Lines)) | Lines];
changed(4, Lines) -> Line = one(Lines), [case L of Line -> byte_changed(L); _ -> L end || L <- Lines];
changed(5, Lines) -> lists:sublist(Lines, rand:uniform(length(Lines)));
changed(6, Lines) -> Last = lists:last(Lines), lists:droplast(Lines) ++ [binary:part(Last, 0, rand:uniform(byte_size(Last)))];
changed(_, Lines) ->
    {Before, [Line | After]} = lists:split(rand:uniform(length(Lines)) - 1, Lines),
    {Front, Back} = lists:split(rand:uniform(length(Lines)) - 1, Before ++ After),
    Front ++ [Line | Back].

byte_changed(Line) ->
    At = rand:uniform(byte_size(Line)) - 1,
    <<Before:At/binary, _, After/binary>> = Line,
    <<Before/binary, (one(~"0123456789<>(){}[],\"'~ax")), After/binary>>.

one(List) when is_list(List) -> lists:nth(rand:uniform(length(List)), List);
one(Bytes) -> binary:at(Bytes, rand:uniform(byte_size(Bytes)) - 1).
