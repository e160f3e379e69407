-module(witness_weave_runtime).
-moduledoc """
What woven code calls: the behaviour of a run-time module.

`received/1` and `sent/2` are called in addition to what the code does, `entry/3` and `called/3` before what a function does, and
`returned/4` after it. Every other function replaces a call and does it. While the process is not observed, all of them preserve the
result, the class and reason of an exception, and the effects of the call that they replace. The only difference is frames of the
run-time module in a stack trace.

A function that replaces a call gets it as module, function and arguments, evaluated in the order of the code.
The table of the plan says which calls have which class (`witness_weave_calls`). A run-time module needs the functions that its
plan can lead to.
""".

-export([calling/2]).

-optional_callbacks([sends/0, sleep/3, sent/2, received/1, take/4, self/0, stack/1, caught/1, timeout/0, waits/1, blocks/1, wakes/1,
                     entry/3, send/3, spawn/3,
                     spawn_request/3, start/3, call/3, cast/3, reply/3, request/3, effect/3, unseen/3, load/3, leave/3, leaving/2,
                     dictionary/3, hibernate/3, result/4, returned/2, foreign/4, information/3, wait/3, token/3, make_fun/3,
                     halt/3, digest/3,
                     callback/3, init/2, called/3, returned/4]).

-doc "A message is sent next, by `!` or `erlang:send/2`. The result is ignored.".
-callback sends() -> term().

-doc "`timer:sleep/1`.".
-callback sleep(module(), atom(), [term()]) -> term().

-doc """
The message was sent, by `!` or `erlang:send/2`. If sends are announced, it is sent next, to a process of this node. The
result is ignored.
""".
-callback sent(To :: term(), Msg :: term()) -> term().

-doc "A clause of a `receive` has taken the message. The result is ignored.".
-callback received(Msg :: term()) -> term().

-doc """
A `receive` that is replaced asks for a message: the result is `[Msg]`, or `timeout` when its time is over. `Match(Bound, Msg)` says
whether one of its clauses matches; `none`: it has no clauses. `module()` contains the `receive`.
""".
-callback take(module(), Match :: fun((Bound :: tuple(), Msg :: term()) -> boolean()) | none, Bound :: tuple(), Time :: term()) ->
    [Msg :: term()] | timeout.

-doc "`self()`, if receives are replaced.".
-callback self() -> pid().

-doc "The stack trace of a caught exception, as the program sees it, if receives are replaced.".
-callback stack([term()]) -> [term()].

-doc "The value that `catch` has made of an exception, if receives are replaced.".
-callback caught(term()) -> term().

-doc "The time of an `after` is over, and no message was taken. The result is ignored.".
-callback timeout() -> term().

-doc """
A `receive` starts that may wait for `Time`, which is the result. No code runs in between. If `Time` is invalid, the `receive`
fails.
""".
-callback waits(Time) -> Time when Time :: term().

-doc "A `receive` has found no message that it takes. It waits for one next, for this time, which may be invalid.".
-callback blocks(Time :: term()) -> Blocked :: term().

-doc "The same `receive` has taken a message, or its time is over. The result is ignored.".
-callback wakes(Blocked :: term()) -> term().

-doc """
An entry function was called in a process without an entry under the plan's key in its dictionary. `go`: the function goes on in
its body; otherwise `V` is its value, and the body is not run.
""".
-callback entry(module(), Function :: atom(), Args :: [term()]) -> go | {done, V :: term()}.

-doc """
`!`, `send` and `send_nosuspend` of `erlang`, if the code does not send by itself. If sends are replaced or announced: to a
receiver that is not, or may not be, a process of this node.
""".
-callback send(module(), atom(), [term()]) -> term().

-doc "Functions that spawn a process and return its identifier.".
-callback spawn(module(), atom(), [term()]) -> term().

-doc "`erlang:spawn_request`. Its child is known only from the reply.".
-callback spawn_request(module(), atom(), [term()]) -> term().

-doc "Functions that spawn a process and wait until it has started, with results like `{ok, Pid}`.".
-callback start(module(), atom(), [term()]) -> term().

-doc "A request to a server, and its reply.".
-callback call(module(), atom(), [term()]) -> term().

-doc "A message to a server, without a reply.".
-callback cast(module(), atom(), [term()]) -> term().

-doc "The reply of a server.".
-callback reply(module(), atom(), [term()]) -> term().

-doc "A request with a reply that is fetched later, and the function that fetches it.".
-callback request(module(), atom(), [term()]) -> term().

-doc "Functions that show or delete the whole process dictionary.".
-callback dictionary(module(), atom(), [term()]) -> term().

-doc """
Functions after which the process waits for a message. `hibernate/3` discards the stack, and with it the frame of `entry/3`;
`hibernate/0` returns.
""".
-callback hibernate(module(), atom(), [term()]) -> term().

-doc "Functions of the VM with a result that depends on more than their arguments. The number is that of the plan's table.".
-callback result(Number :: non_neg_integer(), module(), atom(), [term()]) -> term().

-doc "A call of class `result` that makes a reference has returned this. The result is ignored.".
-callback returned(Number :: non_neg_integer(), term()) -> term().

-doc "Functions of modules that cannot be woven.".
-callback foreign(Number :: non_neg_integer(), module(), atom(), [term()]) -> term().

-doc "`erlang:process_info`, which shows dictionaries.".
-callback information(module(), atom(), [term()]) -> term().

-doc "Functions that act on other processes and return what follows from their arguments.".
-callback effect(module(), atom(), [term()]) -> term().

-doc "`exit/1` and `raise/3` of `erlang`, which may end the process, if the code does not call them by itself.".
-callback leave(module(), atom(), [term()]) -> no_return().

-doc "The code calls one of these next. The result is ignored.".
-callback leaving(Function :: atom(), Args :: [term()]) -> term().

-doc "A call that is not a step of the process.".
-callback unseen(module(), atom(), [term()]) -> term().

-doc "`erlang:make_fun/3`.".
-callback make_fun(module(), atom(), [term()]) -> function().

-doc "`erlang:halt`.".
-callback halt(module(), atom(), [term()]) -> no_return().

-doc "`erlang:prepare_loading/2` and `erlang:load_module/2`, by which all code is loaded.".
-callback load(module(), atom(), [term()]) -> term().

-doc "Functions that show or read the digest of code by which the VM distinguishes funs (`m:witness_weave_funs`).".
-callback digest(module(), atom(), [term()]) -> term().

-doc "`prim_eval:'receive'/2`, with which `erl_eval` receives messages.".
-callback wait(module(), atom(), [term()]) -> term().

-doc "Functions that show or change the token of sequential tracing.".
-callback token(module(), atom(), [term()]) -> term().

-doc "A call with a module or function that is known only now; it may be of any class, or of none. In tail position.".
-callback apply(module(), atom(), [term()]) -> term().

-doc "A fun in the place of `fun Module:Function/Arity`. If calls of that function have a class, the fun does them so.".
-callback function(module(), atom(), arity()) -> function().

-doc "A callback of an OTP behaviour was called (`init/1` only with the plan's key in the dictionary); result as for `entry/3`.".
-callback callback(module(), Function :: atom(), Args :: [term()]) -> go | {done, V :: term()}.

-doc "`init/1` of an OTP behaviour's callback module, which is an entry, in a process without the key; result as for `entry/3`.".
-callback init(module(), Args :: [term()]) -> go | {done, V :: term()}.

-doc """
A function that the plan names was called with these arguments, which none of its clauses may match. Its body is run next. The
result is ignored.
""".
-callback called(module(), Function :: atom(), Args :: [term()]) -> term().

-doc "A function that the plan names returns this value next. The result is ignored.".
-callback returned(module(), Function :: atom(), arity(), Value :: term()) -> term().

-doc "A fun of this arity that calls a function with the list of its arguments; `c:function/3` returns it.".
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
calling(17, Do) ->
    fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q]) end;
calling(18, Do) ->
    fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R) -> Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R]) end;
calling(19, Do) ->
    fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S) ->
        Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S])
    end;
calling(20, Do) ->
    fun(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T) ->
        Do([A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T])
    end.
