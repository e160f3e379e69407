-module(witness_sys_patterns).
-moduledoc """
A process that sends itself one term of each sort, in the order of `terms/0`, and several that get the same terms
from a common source at the same time.
""".
-export([main/1, sink/2, talker/0]).

-spec main(pos_integer()) -> ok.
main(Sinks) ->
    _ = spawn(?MODULE, talker, []),
    Pids = [spawn(?MODULE, sink, [I, length(terms())]) || I <- lists:seq(1, Sinks)],
    _ = [Pid ! Term || Term <- terms(), Pid <- Pids],
    ok.

-spec talker() -> ok.
talker() ->
    _ = [begin self() ! Term, receive Term -> ok end end || Term <- terms()],
    ok.

-spec sink(pos_integer(), non_neg_integer()) -> ok.
sink(_, 0) -> ok;
sink(Id, N) -> receive _ -> sink(Id, N - 1) end.

terms() ->
    [#{key => [1, 2, 3], other => x, "string" => 1},
     <<5:16, "hello", 255>>,
     "prefix and more",
     {$a, 16#ff, 1.5, -3, 'an atom', []},
     {same, 7, {7, [7]}},
     [head, second | improper],
     {nested, [#{a => #{b => {c, <<1:4, 2:4>>}}}]},
     {point, 3, 4},
     {unicode, <<"grüß"/utf8>>, [1081, 8364]},
     {not_a_list, 5},
     {numbers, 1, 1.0}].
