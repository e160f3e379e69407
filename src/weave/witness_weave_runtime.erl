-module(witness_weave_runtime).
-moduledoc """
What woven code calls: the behaviour of a run-time module.

`received/1` and `sent/2` stand beside what the code does anyway, `entry/3` before what a function does, and every other
function stands in the place of a call and does it. What these have in common: while the process is not observed, the
result, the class and reason of an exception, and the effects are those of the call that they stand for. Frames of the
run-time module in a stack trace are the only difference.

The functions that stand for a call are given it as module, function and arguments, evaluated in the order of the code.
Which calls have which class says the table of the plan (`witness_weave_calls`). A run-time module has the functions that its
plan can lead to.
""".

-export([calling/2]).

-optional_callbacks([sends/0, sleep/3, sent/2, received/1, take/4, self/0, stack/1, caught/1, timeout/0, waits/1, blocks/1, wakes/1, entry/3, send/3, spawn/3,
                     spawn_request/3, start/3, call/3, cast/3, reply/3, request/3, effect/3, unseen/3, load/3, leave/3, leaving/2,
                     dictionary/3, hibernate/3, result/4, returned/2, foreign/4, information/3, wait/3, token/3, make_fun/3,
                     halt/3, digest/3,
                     callback/3, init/2]).

-doc "A message is sent next, by `!` or `erlang:send/2`. The result is ignored.".
-callback sends() -> term().

-doc "`timer:sleep/1`.".
-callback sleep(module(), atom(), [term()]) -> term().

-doc """
The message was sent, by `!` or `erlang:send/2`; where sends are announced, it is sent to a process of this node next. The
result is ignored.
""".
-callback sent(To :: term(), Msg :: term()) -> term().

-doc "A clause of a `receive` has taken the message. The result is ignored.".
-callback received(Msg :: term()) -> term().

-doc """
A `receive` that is replaced wants a message: `[Msg]`, or `timeout` when its time is over. `Match(Bound, Msg)` says
whether one of its clauses matches; `none`: it has no clauses. The `receive` stands in `module()`.
""".
-callback take(module(), Match :: fun((Bound :: tuple(), Msg :: term()) -> boolean()) | none, Bound :: tuple(), Time :: term()) ->
    [Msg :: term()] | timeout.

-doc "`self()`, where receives are replaced.".
-callback self() -> pid().

-doc "The stack trace of an exception that was caught, as the program sees it, where receives are replaced.".
-callback stack([term()]) -> [term()].

-doc "What `catch` has made of an exception, where receives are replaced.".
-callback caught(term()) -> term().

-doc "The time of an `after` is over, and no message was taken. The result is ignored.".
-callback timeout() -> term().

-doc """
A `receive` begins that may wait for so long, which is the result. Nothing comes in between; where `Time` is none, the `receive` fails.
""".
-callback waits(Time) -> Time when Time :: term().

-doc "A `receive` has found no message that it takes, and waits for one next, for this time, if that is one.".
-callback blocks(Time :: term()) -> Blocked :: term().

-doc "The same `receive` has taken a message, or its time is over. The result is ignored.".
-callback wakes(Blocked :: term()) -> term().

-doc """
An entry function was called in a process that has no entry under the plan's key in its dictionary. `go`: it goes on in
its body; otherwise `V` is its value, and the body is not run.
""".
-callback entry(module(), Function :: atom(), Args :: [term()]) -> go | {done, V :: term()}.

-doc """
`!`, `send` and `send_nosuspend` of `erlang`, where the code does not send by itself. Where sends are replaced or announced: to what is no
process of this node, or may be none.
""".
-callback send(module(), atom(), [term()]) -> term().

-doc "Functions that spawn a process and tell its identifier.".
-callback spawn(module(), atom(), [term()]) -> term().

-doc "`erlang:spawn_request`, whose child is known only when it replies.".
-callback spawn_request(module(), atom(), [term()]) -> term().

-doc "Functions that spawn a process and wait until it has started, with results like `{ok, Pid}`.".
-callback start(module(), atom(), [term()]) -> term().

-doc "A request to a server, and its reply.".
-callback call(module(), atom(), [term()]) -> term().

-doc "A message to a server that is not replied to.".
-callback cast(module(), atom(), [term()]) -> term().

-doc "The reply of a server.".
-callback reply(module(), atom(), [term()]) -> term().

-doc "A request whose reply is fetched later, and the fetching.".
-callback request(module(), atom(), [term()]) -> term().

-doc "Functions that show or delete the whole process dictionary.".
-callback dictionary(module(), atom(), [term()]) -> term().

-doc """
Functions after which the process waits for a message. `hibernate/3` throws the stack away, and with it what `entry/3` has put there;
`hibernate/0` returns.
""".
-callback hibernate(module(), atom(), [term()]) -> term().

-doc "Functions of the VM whose result depends on more than their arguments. The number is that of the plan's table.".
-callback result(Number :: non_neg_integer(), module(), atom(), [term()]) -> term().

-doc "A call of class `result` that makes a reference has returned this. The result is ignored.".
-callback returned(Number :: non_neg_integer(), term()) -> term().

-doc "Functions of modules that cannot be woven.".
-callback foreign(Number :: non_neg_integer(), module(), atom(), [term()]) -> term().

-doc "`erlang:process_info`, which shows dictionaries.".
-callback information(module(), atom(), [term()]) -> term().

-doc "Functions that act on other processes and return what follows from their arguments.".
-callback effect(module(), atom(), [term()]) -> term().

-doc "`exit/1` and `raise/3` of `erlang`, which the process may end by, where the code does not do so by itself.".
-callback leave(module(), atom(), [term()]) -> no_return().

-doc "One of these comes next. The result is ignored.".
-callback leaving(Function :: atom(), Args :: [term()]) -> term().

-doc "What is done here is no step of the process.".
-callback unseen(module(), atom(), [term()]) -> term().

-doc "`erlang:make_fun/3`.".
-callback make_fun(module(), atom(), [term()]) -> function().

-doc "`erlang:halt`.".
-callback halt(module(), atom(), [term()]) -> no_return().

-doc "`erlang:prepare_loading/2` and `erlang:load_module/2`, by which all code is loaded.".
-callback load(module(), atom(), [term()]) -> term().

-doc "Functions that show or read the digest of code by which the VM tells funs apart (`m:witness_weave_funs`).".
-callback digest(module(), atom(), [term()]) -> term().

-doc "`prim_eval:'receive'/2`, with which `erl_eval` takes messages.".
-callback wait(module(), atom(), [term()]) -> term().

-doc "Functions that show or change the token of sequential tracing.".
-callback token(module(), atom(), [term()]) -> term().

-doc "A call whose module or function is known only now; it may be of any class, or of none. In tail position.".
-callback apply(module(), atom(), [term()]) -> term().

-doc "A fun in the place of `fun Module:Function/Arity`: where calls of it have a class, one that does them so.".
-callback function(module(), atom(), arity()) -> function().

-doc "A callback of an OTP behaviour was called in a process with the plan's key in its dictionary; result as for `entry/3`.".
-callback callback(module(), Function :: atom(), Args :: [term()]) -> go | {done, V :: term()}.

-doc "`init/1` of an OTP behaviour's callback module, which is an entry, in a process without the key; result as for `entry/3`.".
-callback init(module(), Args :: [term()]) -> go | {done, V :: term()}.

-doc "A fun of this arity that does something with the list of its arguments: what `c:function/3` gives.".
-spec calling(0..20, fun(([term()]) -> term())) -> function().
calling(0, Do) -> fun() -> Do([]) end;
calling(1, Do) -> fun(A) -> Do([A]) end;
calling(2, Do) -> fun(A, B) -> Do([A, B]) end;
calling(3, Do) -> fun(A, B, C) -> Do([A, B, C]) end;
calling(4, Do) -> fun(A, B, C, D) -> Do([A, B, C, D]) end;
calling(5, Do) -> fun(A, B, C, D, E) -> Do([A, B, C, D, E]) end;
calling(6, Do) -> fun(A, B, C, D, E, F) -> Do([A, B, C, D, E, F]) end;
calling(7, Do) -> fun(A, B, C, D, E, F, G) -> Do([A, B, C, D, E, F, G]) end;
calling(8, Do) -> fun(A, B, C, D, E, F, G, H) -> Do([A, B, C, D, E, F, G, H]) end;
calling(9, Do) -> fun(A, B, C, D, E, F, G, H, I) -> Do([A, B, C, D, E, F, G, H, I]) end;
calling(10, Do) -> fun(A, B, C, D, E, F, G, H, I, J) -> Do([A, B, C, D, E, F, G, H, I, J]) end;
calling(11, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K) -> Do([A, B, C, D, E, F, G, H, I, J, K]) end;
calling(12, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L) -> Do([A, B, C, D, E, F, G, H, I, J, K, L]) end;
calling(13, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M]) end;
calling(14, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N]) end;
calling(15, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O]) end;
calling(16, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P]) end;
calling(17, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q]) end;
calling(18, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R]) end;
calling(19, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S]) end;
calling(20, Do) -> fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T]) end.
