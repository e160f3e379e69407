-module(witness_recorded_compiled).
-moduledoc "Patterns and match specifications that the VM has compiled: sent, kept in memory that processes share, and used by other processes than the one that has compiled them.".

-export([patterns/0]).

-spec patterns() -> term().
patterns() ->
    Me = self(),
    Table = ets:new(kept, [public]),
    %% It looks into the table until they are there, and is told by no message.
    Finder = spawn_monitor(fun() -> exit({found, used(found(Table))}) end),
    {Maker, Made} = spawn_monitor(fun() ->
        Patterns = made(),
        true = ets:insert(Table, {patterns, Patterns}),
        persistent_term:put(?MODULE, Patterns),
        Me ! {self(), Patterns},
        receive {Me, stop} -> ok end
    end),
    Sent = receive {Maker, Patterns} -> Patterns end,
    Maker ! {Me, stop},
    receive {'DOWN', Made, process, Maker, normal} -> ok end,
    {Pid, Monitor} = Finder,
    Found = receive {'DOWN', Monitor, process, Pid, {found, Is}} -> Is end,
    Used = used(Sent),
    {[{1, _}], Rest} = ets:select(Table, [{{'$1', '_'}, [{'=:=', '$1', patterns}], [{{1, '$1'}}]}], 1),
    Again = ets:repair_continuation(Rest, [{{'$1', '_'}, [{'=:=', '$1', patterns}], [{{1, '$1'}}]}]),
    {Found, Used, Again =:= Rest andalso used(persistent_term:get(?MODULE)) =:= Used, Sent, erlang:phash2(Sent),
     lists:sort(tuple_to_list(Sent))}.

found(Table) ->
    case ets:lookup(Table, patterns) of
        [{_, Patterns}] -> Patterns;
        [] -> found(Table)
    end.

made() ->
    {ok, Expression} = re:compile("b+"),
    {ok, Named} = re:compile("(?<all>.)", [unicode]),
    {error, _} = re:compile("("),
    {Expression, Named, binary:compile_pattern([<<"x">>, <<"yy">>]), binary:compile_pattern(<<"z">>),
     ets:match_spec_compile([{{'$1', a}, [], ['$1']}])}.

used({Expression, Named, Any, One, Spec}) ->
    Run = fun re:run/2,
    {re:run("aabbb", Expression), Run("abb", Expression),
     apply(list_to_existing_atom("re"), run, ["b", Expression, [{capture, none}]]),
     re:split("abbc", Expression, [{return, list}]), re:replace("abbcbb", Expression, "-", [global, {return, list}]),
     re:run("abcb", Expression, [global]), re:inspect(Named, namelist),
     binary:match(<<"axyyz">>, Any), binary:matches(<<"axyyz">>, Any), binary:match(<<"zz">>, One, [{scope, {1, 1}}]),
     binary:split(<<"azb">>, One), binary:split(<<"azbz">>, One, [global]), binary:replace(<<"azaz">>, One, <<"-">>, [global]),
     ets:match_spec_run([{1, a}, {2, b}], Spec), ets:is_compiled_ms(Spec), ets:is_compiled_ms(make_ref()),
     failed(fun() -> re:run(a, Expression) end), failed(fun() -> binary:match(a, One) end),
     failed(fun() -> binary:compile_pattern(a) end)}.

%% What fails has the arguments that it was given.
failed(Fun) ->
    try Fun()
    catch error:Reason:Stack ->
        {Module, Function, Args, _} = hd(Stack),
        {Reason, Module, Function, Args}
    end.
