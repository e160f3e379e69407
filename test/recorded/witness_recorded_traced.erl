-module(witness_recorded_traced).
-moduledoc "Functions that return, raise, throw, loop, and give much; what they do is no event.".

-export([main/1, unused/0]).

main(Times) ->
    1 = half(4),
    {odd, 3} = try half(6) catch error:Reason -> Reason end,
    thrown = try throws() catch Thrown -> Thrown end,
    Large = large(2_000_000),
    2_000_000 = byte_size(Large),
    done = count(Times),
    Self = self(),
    _ = spawn(fun() -> Self ! told end),
    receive told -> ok end.

half(1) -> 1;
half(N) when N rem 2 =:= 0 ->
    Half = half(N div 2),
    min(Half, N);
half(N) -> error({odd, N}).

throws() -> throw(thrown).

large(Size) -> binary:copy(~"x", Size).

count(0) -> done;
count(N) -> count(N - 1).

unused() -> ok.
