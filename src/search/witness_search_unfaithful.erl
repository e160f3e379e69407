-module(witness_search_unfaithful).
-moduledoc "What makes a run depend on more than its schedule, as text. Pure.".

-export([format/1]).

-doc "What has made runs depend on more than their schedule.".
-spec format(term()) -> unicode:chardata().
format({differs, Function}) -> [function(Function), ~": its result does not follow from the schedule"];
format({foreign, Function}) -> [function(Function), ~": it is called for real, and may differ from run to run"];
format({heir, Function}) -> [function(Function), ~": tables go to another process outside the schedule"];
format({outside, Name}) ->
    [~"a message to ", witness_event:format_term(Name, 100), ~", which is no process of the program: when it answers is not controlled"];
format(Other) -> witness_event:format_term(Other, 200).

function({Module, _, _} = MFA) -> witness_event:format_function(MFA, witness_event:syntax([Module])).
