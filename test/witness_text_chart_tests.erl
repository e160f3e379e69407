-module(witness_text_chart_tests).
-moduledoc "Between which lanes a chart draws messages, and what it calls them.".

-include_lib("eunit/include/eunit.hrl").

reply_to_an_alias_goes_to_its_owner_without_the_request_test() ->
    [Server, Caller] = pids(["<0.91.0>", "<0.92.0>"]),
    Alias = make_ref(),
    Reply = {send, Server, Alias, {[alias | Alias], 7}, undefined},
    ?assertEqual({[Server, Caller], [{0, 1, ~"reply(_, 7)"}]},
                 arrows([Reply], #{titles => #{}, aliases => #{Alias => Caller}}, [Server, Caller])),
    ?assertEqual({[Server, Alias], [{0, 1, ~"reply(_, 7)"}]},
                 arrows([Reply], #{titles => #{}, aliases => #{}}, [Server, Alias])).

caller_of_a_reply_has_its_name_test() ->
    [Server, Caller] = pids(["<0.91.0>", "<0.92.0>"]),
    Alias = make_ref(),
    {Lanes, _} = witness_text_chart:sequence([step({send, Server, Alias, {[alias | Alias], 7}, undefined})],
                                             #{titles => #{Caller => ~"till"}, aliases => #{Alias => Caller}}),
    ?assertEqual([#{name => ~"<0.91.0>", title => undefined}, #{name => ~"<0.92.0>", title => ~"till"}], Lanes).

arrows(Events, Known, Parties) ->
    {Lanes, Arrows} = witness_text_chart:sequence([step(Event) || Event <- Events], Known),
    {[Party || #{name := Name} <- Lanes, Party <- Parties, shown(Party) =:= Name],
     [{From, To, Text} || #{from := From, to := To, text := Text} <- Arrows]}.

%% As the heading of a lane.
shown(Party) -> witness_event:format_term(Party, 15).

step(Event) -> #{index => 1, event => Event, formula => undefined, bindings => []}.

pids(Texts) -> [list_to_pid(Text) || Text <- Texts].
