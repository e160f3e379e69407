-module(witness_setting).
-moduledoc "How much is tested, from the environment: a run of its own may take longer than the gate.".

-export([number/2]).

-doc "The number that a variable of the environment has, or the default where it is not set or empty.".
-spec number(Variable :: string(), Default :: integer()) -> integer().
number(Variable, Default) ->
    case os:getenv(Variable, "") of
        "" -> Default;
        Text -> list_to_integer(Text)
    end.
