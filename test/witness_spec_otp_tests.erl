-module(witness_spec_otp_tests).
-moduledoc """
Which messages each name of OTP's messages matches: all that are a request or a reply of OTP, and all that nearly are one, against
the oracle (`m:witness_spec_oracle`).
""".
-include_lib("eunit/include/eunit.hrl").

each_name_matches_what_the_semantics_says_test_() ->
    {timeout, 120, fun() ->
        Actions = [{recv, ['_', Pattern], []} || Pattern <- patterns()],
        Text = [[io_lib:format("with m:f() check [~ts] ff.~n", [witness_spec_oracle_text:action(Action, 0)])] || Action <- Actions],
        {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"otp.hml", unicode:characters_to_binary(Text)),
        Messages = messages(),
        Signature = {m, f, []},
        Wrong = [{Action, Message} || {Index, Action} <- lists:enumerate(Actions),
                                      {ok, State} <- [Module:init(Signature, self(), Index)],
                                      Message <- Messages, Event <- [{recv, self(), undefined, Message, 0}],
                                      matches(Module:handle_event(Event, State))
                                          =/= (witness_spec_oracle:match(Action, Event, #{}) =/= no)],
        ok = witness_spec:unload(Map),
        ?assert(length(Messages) > 10_000),
        ?assertEqual([], lists:sublist(Wrong, 5))
    end}.

matches({verdict, no, _}) -> true;
matches({verdict, yes, _}) -> false.

patterns() ->
    Any = {var, 'M'},
    Bound = [{otp, info, [Pattern]} || Pattern <- ['_', Any, {tuple, [Any, {var, 'N'}]}, {tuple, ['_', '_', Any]},
                                                   {same, Any, {tuple, ['_', '_', '_']}}, {tuple, [{lit, a}, '_', '_']}]],
    Bound ++ [{otp, call, ['_', Any]}, {otp, call, ['_', Any, '_']}, {otp, cast, [Any]}, {otp, notify, [Any]},
              {otp, sync_notify, ['_', Any]}, {otp, reply, ['_', Any]}, {otp, reply, [{tuple, ['_', {lit, a}]}, Any]}].

%% Tuples of up to four of these parts in each place, so that each condition of each name is met and missed by itself.
messages() ->
    Self = self(),
    Other = spawn(fun() -> ok end),
    Ref = make_ref(),
    Parts = ['$gen_call', '$gen_cast', system, notify, a, Self, Ref, [], [alias | Ref], [[alias | Ref] | Ref], [alias], [[]], {},
             1],
    Froms = [{Self, Ref}, {Self, Ref, Ref}, {Self}, {Other, Ref}, {a, Ref}, {Other, [alias | Ref]}, {}, Self, a, [Self, Ref]],
    Names = [sync_notify, call, add_handler, add_sup_handler, delete_handler, swap_handler, swap_sup_handler, which_handlers,
             get_modules, a, 1],
    Requests = Names ++ [{Name} || Name <- Names] ++ [{Name, x} || Name <- Names] ++ [{Name, x, y} || Name <- Names]
        ++ [[sync_notify, x], {}],
    Parts ++ Requests ++ [{Part} || Part <- Parts]
        ++ [{Part, Rest} || Part <- Parts, Rest <- Froms ++ Requests]
        ++ [{Part, From, Request} || Part <- Parts, From <- Froms, Request <- Requests]
        ++ [{Part, From, Request, 1} || Part <- Parts, From <- Froms, Request <- Requests].
