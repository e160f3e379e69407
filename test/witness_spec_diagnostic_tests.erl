%% Every error and warning, as it is shown: a specification and what the compiler says about it, "" for nothing.
%% A new one is a pair in its table; when it fails, the output shows what was said instead, line by line.
-module(witness_spec_diagnostic_tests).
-include_lib("eunit/include/eunit.hrl").

grammar_test_() ->
    shown([
        {"foo",
         """
         s:1:1: error: expected a property, such as `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`, found `foo`
           foo
           ^
         """},
        {"with",
         """
         s:1:5: error: expected a signature
           with
               ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with m",
         """
         s:1:6: error: expected a signature
           with m
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with m:f",
         """
         s:1:6: error: expected a signature
           with m:f
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with m:f(",
         """
         s:1:9: error: `(` is never closed
           with m:f(
                   ^
         """},
        {"with m:f(_)",
         """
         s:1:12: error: expected `monitor`, `check`, `none`, `machine` or a sentence, found the end of the file
           with m:f(_)
                      ^
           a sentence begins with `never`, `always`, `at most`, `at least`, `exactly`, `unique`, `increasing`, or an action in braces
         """},
        {"with m:f(_).",
         """
         s:1:12: error: expected `monitor`, `check`, `none`, `machine` or a sentence, found `.`
           with m:f(_).
                      ^
           a sentence begins with `never`, `always`, `at most`, `at least`, `exactly`, `unique`, `increasing`, or an action in braces
         """},
        {"with 3:f(_) none.",
         """
         s:1:6: error: expected a signature
           with 3:f(_) none.
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with m:f(_) X none.",
         """
         s:1:13: error: expected the end of the signature, found `X`
           with m:f(_) X none.
                       ^
         """},
        {"with m:f(_), none.",
         """
         s:1:14: error: expected a signature
           with m:f(_), none.
                        ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with m:f(_) group none.",
         """
         s:1:13: error: a signature with `none` begins no group
           with m:f(_) group none.
                       ^
         """},
        {"with m:f(_) monitor",
         """
         s:1:20: error: expected a formula, found the end of the file
           with m:f(_) monitor
                              ^
         """},
        {"with m:f(_) monitor ff",
         """
         s:1:23: error: expected `.` at the end of the property, found the end of the file
           with m:f(_) monitor ff
                                 ^
         """},
        {"with m:f(_) monitor ff ff.",
         """
         s:1:24: error: expected `.` at the end of the property, found `ff`
           with m:f(_) monitor ff ff.
                                  ^
         """},
        {"with m:f(_) monitor (ff.",
         """
         s:1:24: error: expected `)`, found `.`
           with m:f(_) monitor (ff.
                                  ^
           to close the `(` of line 1, column 21
         """},
        {"with m:f(_) monitor and ff.",
         """
         s:1:21: error: expected a formula, found `and`
           with m:f(_) monitor and ff.
                               ^
           it stands between two formulas, or in front of a list: `and(f, g)`
         """},
        {"with m:f(_) monitor and().",
         """
         s:1:25: error: expected a formula, found `)`
           with m:f(_) monitor and().
                                   ^
         """},
        {"with m:f(_) monitor max x. ff.",
         """
         s:1:25: error: expected a recursion variable, found `x`
           with m:f(_) monitor max x. ff.
                                   ^
         """},
        {"with m:f(_) monitor max X ff.",
         """
         s:1:27: error: expected `.` after the recursion variable, found `ff`
           with m:f(_) monitor max X ff.
                                     ^
         """},
        {"with m:f(_) monitor max(X. [_ ? a] X.",
         """
         s:1:37: error: expected `)`, found `.`
           with m:f(_) monitor max(X. [_ ? a] X.
                                               ^
           to close the `(` of line 1, column 24
         """},
        {"with m:f(_) monitor [_ ? a",
         """
         s:1:21: error: `[` is never closed
           with m:f(_) monitor [_ ? a
                               ^
         """},
        {"with m:f(_) monitor [_ ? a ff.",
         """
         s:1:30: error: expected `]`, found `.`
           with m:f(_) monitor [_ ? a ff.
                                        ^
           to close the `[` of line 1, column 21
         """},
        {"with m:f(_) monitor [_ ? {a, b] ff.",
         """
         s:1:31: error: expected `}`, found `]`
           with m:f(_) monitor [_ ? {a, b] ff.
                                         ^
           to close the `{` of line 1, column 26
         """},
        {"with m:f(_) check <_ ? a ff.",
         """
         s:1:28: error: expected `>`, found `.`
           with m:f(_) check <_ ? a ff.
                                      ^
           to close the `<` of line 1, column 19
         """},
        {"with m:f(_) check <_ ? A when A > 3> tt.",
         """
         s:1:35: error: expected a formula, found `3`
           with m:f(_) check <_ ? A when A > 3> tt.
                                             ^
           a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`
         """},
        {"with m:f(_) check (<_ ? A when A > B> tt).",
         """
         s:1:37: error: expected `)`, found `>`
           with m:f(_) check (<_ ? A when A > B> tt).
                                               ^
           a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`
         """},
        {"with m:f(_) monitor -record(a, {b}).",
         """
         s:1:21: error: expected a formula, found `-`
           with m:f(_) monitor -record(a, {b}).
                               ^
         """},
        {"max X. ff.",
         """
         s:1:1: error: expected a property, such as `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`, found `max`
           max X. ff.
           ^
         """},
        {"with m:f(_) monitor max X",
         """
         s:1:26: error: expected `.` after the recursion variable, found the end of the file
           with m:f(_) monitor max X
                                    ^
         """},
        {"with m:f(_) monitor or ff.",
         """
         s:1:21: error: expected a formula, found `or`
           with m:f(_) monitor or ff.
                               ^
           it stands between two formulas, or in front of a list: `or(f, g)`
         """},
        {"with m:f(_), m:g(_) when A, B monitor ff",
         """
         s:1:41: error: expected `.` at the end of the property, found the end of the file
           with m:f(_), m:g(_) when A, B monitor ff
                                                   ^
         """},
        {"with m:f(X)y none.",
         """
         s:1:12: error: expected the end of the signature, found `y`
           with m:f(X)y none.
                      ^
         """},
        {"with m:f(_) check <_ ? a when b> 3.",
         """
         s:1:34: error: expected a formula, found `3`
           with m:f(_) check <_ ? a when b> 3.
                                            ^
           a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`
         """}]).

calls_and_returns_test_() ->
    Over = "a: with m:f(_) over _ calls n:g(_, _), _ returns n:g/2 -> V, _ ? go ",
    shown([
        {Over ++ "check [_ calls n:g(A, A)] [_ returns n:g/2 -> {ok, A}] <_ returns n:g/2 -> _> ff.", ""},
        {Over ++ "check [_ calls n:g(_)] ff.",
         """
         s:1:76: error: the calls of `n:g/1` are events only where `over` names them
           a: with m:f(_) over _ calls n:g(_, _), _ returns n:g/2 -> V, _ ? go check [_ calls n:g(_)] ff.
                                                                                      ^
           `over` needs such an action, as in `over _ calls n:g(_)`
         """},
        {"a: with m:f(_) check [_ returns n:g/1 -> _] ff.",
         """
         s:1:23: error: the returns of `n:g/1` are events only where `over` names them
           a: with m:f(_) check [_ returns n:g/1 -> _] ff.
                                 ^
           `over` needs such an action, as in `over _ returns n:g/1 -> _`
         """},
        {"a: with m:f(_) over _ calls n:g(_) let V = once {_ returns n:g/1 -> _} check [_ calls n:g(_) when V] ff.",
         """
         s:1:50: error: the returns of `n:g/1` are events only where `over` names them
           a: with m:f(_) over _ calls n:g(_) let V = once {_ returns n:g/1 -> _} check [_ calls n:g(_) when V] ff.
                                                            ^
           `over` needs such an action, as in `over _ returns n:g/1 -> _`
         """},
        {"a: with m:f(_) over _ calls M:g(_) check ff.",
         """
         s:1:29: error: `calls` needs the name of the function
           a: with m:f(_) over _ calls M:g(_) check ff.
                                       ^
           as in `_ calls ets:insert(Table, _)`: which functions are traced is settled before anything runs
         """},
        {"a: with m:f(_) over calls n:g(_) check ff.",
         """
         s:1:21: error: `calls` needs the process in front of it
           a: with m:f(_) over calls n:g(_) check ff.
                               ^
           as in `_ calls m:f(A)` or `_ returns m:f/1 -> V`
         """},
        {"a: with m:f(_) over _ ? calls, _ : returns ! calls check [_ ? calls] [_ : returns ! calls] ff.", ""},
        {"a: with m:f(_) over _ calls n:g/1 check ff.",
         """
         s:1:32: error: `calls` needs the arguments
           a: with m:f(_) over _ calls n:g/1 check ff.
                                          ^
           as in `_ calls m:f(_, _)`: the number of arguments belongs to `returns`
         """},
        {"a: with m:f(_) over _ returns n:g/256 -> _ check ff.",
         """
         s:1:35: error: a function has at most 255 arguments
           a: with m:f(_) over _ returns n:g/256 -> _ check ff.
                                             ^
         """},
        {"a: with m:f(_) over _ returns n:g(_) -> _ check ff.",
         """
         s:1:31: error: `returns` needs the name of the function, and the number of its arguments
           a: with m:f(_) over _ returns n:g(_) -> _ check ff.
                                         ^
           as in `_ returns m:f/1 -> Value`: which functions are traced is settled before anything runs
         """},
        {"a: with m:f(_) over _ returns n:g/1 check ff.",
         """
         s:1:36: error: expected `->` and the value
           a: with m:f(_) over _ returns n:g/1 check ff.
                                              ^
           as in `_ returns m:f/1 -> Value`: which functions are traced is settled before anything runs
         """}])
    ++ shown(#{no_functions => {"nobody looks", "look"}}, [
        {"a: with m:f(_) over _ ? go, _ calls n:g(_), _ returns n:g/1 -> _ check [_ ? go] [_ calls n:g(_)] ff.",
         """
         s:1:29: error: calls and returns of functions cannot be seen here: nobody looks
           a: with m:f(_) over _ ? go, _ calls n:g(_), _ returns n:g/1 -> _ check [_ ? go] [_ calls n:g(_)] ff.
                                       ^
           look
         """},
        {"a: with m:f(_) over _ ? go check [_ ? go] [_ ? go] ff.", ""}]).

%% Where clocks differ, only `within` and `during` compare times.
clocks_test_() ->
    shown(#{clocks => 1}, [
        {"with m:f(_) over _ ? _ monitor [_ ? a at T] [_ ? b at U when U - T > 5 s] ff.",
         """
         s:1:62: error: `U` is the time of an event, and the clocks may differ (`--clocks`)
           with m:f(_) over _ ? _ monitor [_ ? a at T] [_ ? b at U when U - T > 5 s] ff.
                                                                        ^
           `within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`
         s:1:66: error: `T` is the time of an event, and the clocks may differ (`--clocks`)
           with m:f(_) over _ ? _ monitor [_ ? a at T] [_ ? b at U when U - T > 5 s] ff.
                                                                            ^
           `within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`
         """},
        {"with m:f(_) over _ ? _ monitor [_ ? a at T] max X(N = T).[_ ? {b, N}] X(N + 1) and [_ ? c] ff.",
         """
         s:1:55: error: `T` is the time of an event, and the clocks may differ (`--clocks`)
           with m:f(_) over _ ? _ monitor [_ ? a at T] max X(N = T).[_ ? {b, N}] X(N + 1) and [_ ? c] ff.
                                                                 ^
           `within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`
         """},
        {"with m:f(_) over _ ? _ monitor [_ ? a at T] max X(N = 0).([_ ? b] X(T) and [_ ? {c, N}] ff).",
         """
         s:1:69: error: `T` is the time of an event, and the clocks may differ (`--clocks`)
           with m:f(_) over _ ? _ monitor [_ ? a at T] max X(N = 0).([_ ? b] X(T) and [_ ? {c, N}] ff).
                                                                               ^
           `within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`
         """},
        {"define Late(S) = [_ ? b at U when U > S] ff.\nwith m:f(_) over _ ? _ monitor [_ ? a] Late(3).",
         """
         s:1:35: error: `U@1` is the time of an event, and the clocks may differ (`--clocks`)
           define Late(S) = [_ ? b at U when U > S] ff.
                                             ^
           `within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`; in the definition `Late`, used in line 2, column 40
         """},
        {"with m:f(_) over _ ? _\nlet A = once within 5 s {_ ? a}\nlet B = once within 5 events {_ ? a}\n"
         "monitor [_ ? b when A, B] ff.",
         """
         s:2:5: error: which events are in the window of `A` would depend on clocks that may differ (`--clocks`)
           let A = once within 5 s {_ ? a}
               ^
           a window may have a number of events, as `within 10 events`; with a window of time, check without `--clocks`
         """},
        {"with m:f(_) over _ ? _ monitor [_ ? a at T] [_ ? b] ff.", ""},
        {"with m:f(_) over _ ? _ check within 5 s [_ ? a] within 9 s <_ ? b> tt.", ""},
        {"with m:f(_) over _ ? _ check within 5 s within 9 s <_ ? b> tt.",
         """
         s:1:41: warning: this deadline can never pass
           with m:f(_) over _ ? _ check within 5 s within 9 s <_ ? b> tt.
                                                   ^
           the one of `within` around it passes first; `within` behind an action begins with that action
         """}]).

actions_test_() ->
    shown([
        {"with m:f(_) monitor [] ff.",
         """
         s:1:22: error: expected an action
           with m:f(_) monitor [] ff.
                                ^
           an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, `P returns m:f/1 -> V`
         """},
        {"with m:f(_) monitor [{}] ff.",
         """
         s:1:23: error: expected an action
           with m:f(_) monitor [{}] ff.
                                 ^
           an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, `P returns m:f/1 -> V`
         """},
        {"with m:f(_) monitor [P ! a] ff.",
         """
         s:1:22: error: this is not an action
           with m:f(_) monitor [P ! a] ff.
                                ^
           an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, `P returns m:f/1 -> V`
         """},
        {"with m:f(_) monitor [P ? ] ff.",
         """
         s:1:26: error: expected a pattern for the message
           with m:f(_) monitor [P ? ] ff.
                                    ^
         """},
        {"with m:f(_) monitor [ ? a] ff.",
         """
         s:1:23: error: expected a pattern for the process
           with m:f(_) monitor [ ? a] ff.
                                 ^
         """},
        {"with m:f(_) monitor [P ? a, b] ff.",
         """
         s:1:29: error: expected one pattern for the message, found several
           with m:f(_) monitor [P ? a, b] ff.
                                       ^
         """},
        {"with m:f(_) monitor [P ? a b] ff.",
         """
         s:1:28: error: syntax error before `b`
           with m:f(_) monitor [P ? a b] ff.
                                      ^
         """},
        {"with m:f(_) monitor [P ? a when ] ff.",
         """
         s:1:33: error: expected a guard test
           with m:f(_) monitor [P ? a when ] ff.
                                           ^
         """},
        {"with m:f(_) monitor [P ? a when b when c] ff.",
         """
         s:1:35: error: there is a second `when` here
           with m:f(_) monitor [P ? a when b when c] ff.
                                             ^
         """},
        {"with m:f(_) monitor [P : b] ff.",
         """
         s:1:27: error: expected `!` and a message
           with m:f(_) monitor [P : b] ff.
                                     ^
           a send is written `P : Q ! M`
         """},
        {"with m:f(_) monitor [P : b ! c ! d] ff.",
         """
         s:1:32: error: there is a second `!` here
           with m:f(_) monitor [P : b ! c ! d] ff.
                                          ^
         """},
        {"with m:f(_) monitor [P -> b] ff.",
         """
         s:1:28: error: expected `,` and a signature
           with m:f(_) monitor [P -> b] ff.
                                      ^
           it is written `P -> C, m:f(A)`
         """},
        {"with m:f(_) monitor [P -> C, m:f(a)b] ff.",
         """
         s:1:36: error: expected the end of the signature, found `b`
           with m:f(_) monitor [P -> C, m:f(a)b] ff.
                                              ^
         """},
        {"with m:f(_) monitor [P : ! b] ff.",
         """
         s:1:26: error: expected a pattern for the receiver
           with m:f(_) monitor [P : ! b] ff.
                                    ^
         """},
        {"with m:f(_) monitor [C <- P] ff.",
         """
         s:1:28: error: expected `,` and a signature
           with m:f(_) monitor [C <- P] ff.
                                      ^
           it is written `C <- P, m:f(A)`
         """},
        {"with m:f(_) monitor [P ? a, when b] ff.",
         """
         s:1:29: error: this pattern or guard is not complete
           with m:f(_) monitor [P ? a, when b] ff.
                                       ^
         """},
        {"with m:f(_) monitor [P ** ] ff.",
         """
         s:1:27: error: expected a pattern for the exit reason
           with m:f(_) monitor [P ** ] ff.
                                     ^
         """},
        {"with m:f(_) monitor [ -> C, m:f(_)] ff.",
         """
         s:1:23: error: expected a pattern for the parent process
           with m:f(_) monitor [ -> C, m:f(_)] ff.
                                 ^
         """}]).

patterns_and_guards_test_() ->
    shown([
        {"with m:f(_) monitor [_ ? foo(1)] ff.",
         """
         s:1:26: error: this is not an Erlang pattern
           with m:f(_) monitor [_ ? foo(1)] ff.
                                    ^
           `call(...)`, `cast(...)`, `reply(...)` and the like stand for whole messages only
         """},
        {"with m:f(_) monitor [_ ? {x, fun() -> halt() end}] ff.",
         """
         s:1:30: error: this is not an Erlang pattern
           with m:f(_) monitor [_ ? {x, fun() -> halt() end}] ff.
                                        ^
         """},
        {"with m:f(halt()) none.",
         """
         s:1:10: error: this is not an Erlang pattern
           with m:f(halt()) none.
                    ^
           `call(...)`, `cast(...)`, `reply(...)` and the like stand for whole messages only
         """},
        {"with m:f(_) monitor [_ ? A + 1] ff.",
         """
         s:1:26: error: an operator in a pattern needs numbers on both sides
           with m:f(_) monitor [_ ? A + 1] ff.
                                    ^
         """},
        {"with m:f(_) monitor [_ ? #{a => 1}] ff.",
         """
         s:1:30: error: a pattern matches a map field with `:=`, not with `=>`
           with m:f(_) monitor [_ ? #{a => 1}] ff.
                                        ^
         """},
        {"with m:f(_) monitor [_ ? a when foo(1)] ff.",
         """
         s:1:33: error: `foo/1` is not a function that a guard may call
           with m:f(_) monitor [_ ? a when foo(1)] ff.
                                           ^
           guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1
         """},
        {"with m:f(_) monitor [_ ? a when halt()] ff.",
         """
         s:1:33: error: `halt/0` is not a function that a guard may call
           with m:f(_) monitor [_ ? a when halt()] ff.
                                           ^
           guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1
         """},
        {"with m:f(_) monitor [_ ? a when\n"
         "  is_atom(a, b, c)] ff.",
         """
         s:2:3: error: `is_atom/3` is not a function that a guard may call
             is_atom(a, b, c)] ff.
             ^
           guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1
         """},
        {"with m:f(_) monitor [_ ? a when file:delete(x)] ff.",
         """
         s:1:33: error: `file:delete/1` is not a function that a guard may call
           with m:f(_) monitor [_ ? a when file:delete(x)] ff.
                                           ^
           guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1
         """},
        {"with m:f(_) monitor [_ ? A when A ++ A] ff.",
         """
         s:1:35: error: this has no place in a guard
           with m:f(_) monitor [_ ? A when A ++ A] ff.
                                             ^
         """},
        {"with m:f(_) monitor [_ ? A when begin A end] ff.",
         """
         s:1:33: error: this has no place in a guard
           with m:f(_) monitor [_ ? A when begin A end] ff.
                                           ^
         """},
        {"with m:f(_) monitor [_ ? <<A:N>>] ff.",
         """
         s:1:30: error: the variable `N` is not bound
           with m:f(_) monitor [_ ? <<A:N>>] ff.
                                        ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """},
        {"with m:f(_) monitor [_ ? {N, <<A:N>>}] ff.",
         """
         s:1:34: error: the variable `N` is not bound
           with m:f(_) monitor [_ ? {N, <<A:N>>}] ff.
                                            ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """},
        {"with m:f(_) monitor [_ ? #{K := 1}] ff.",
         """
         s:1:28: error: the variable `K` is not bound
           with m:f(_) monitor [_ ? #{K := 1}] ff.
                                      ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """},
        {"with m:f(_) monitor [_ ? A when _ > A] ff.",
         """
         s:1:33: error: variable '_' is unbound
           with m:f(_) monitor [_ ? A when _ > A] ff.
                                           ^
         """},
        {"with m:f(_) monitor [_ ? <<1/foo>>] ff.",
         """
         s:1:28: error: bit type foo undefined
           with m:f(_) monitor [_ ? <<1/foo>>] ff.
                                      ^
         """},
        {"with m:f(_) monitor [_ ? -a] ff.",
         """
         s:1:27: error: an operator in a pattern needs numbers on both sides
           with m:f(_) monitor [_ ? -a] ff.
                                     ^
         """},
        {"with m:f(_) monitor [_ ? 1 and 2] ff.",
         """
         s:1:28: error: `and` has no place in a pattern
           with m:f(_) monitor [_ ? 1 and 2] ff.
                                      ^
         """},
        {"with m:f(_) monitor [_ ? a when erlang:foo(1)] ff.",
         """
         s:1:33: error: `foo/1` is not a function that a guard may call
           with m:f(_) monitor [_ ? a when erlang:foo(1)] ff.
                                           ^
           guards may call Erlang's guard BIFs only, such as is_pid/1 or length/1
         """},
        {"with m:f(_) monitor [_ ? (a] ff.",
         """
         s:1:28: error: expected `)`, found `]`
           with m:f(_) monitor [_ ? (a] ff.
                                      ^
           to close the `(` of line 1, column 26
         """},
        {"with m:f(_) monitor [_ ? {a,}] ff.",
         """
         s:1:29: error: syntax error before `}`
           with m:f(_) monitor [_ ? {a,}] ff.
                                       ^
         """}]).

variables_test_() ->
    shown([
        {"with m:f(_) monitor [_ ? a when A > 1] ff.",
         """
         s:1:33: error: the variable `A` is not bound
           with m:f(_) monitor [_ ? a when A > 1] ff.
                                           ^
           a guard knows the variables of its pattern, of the signatures, and of the actions in front of it
         """},
        {"with m:f(A), m:g(_) monitor [_ ? B when A > B] ff.",
         """
         s:1:41: error: `A` is not bound by all of the signatures
           with m:f(A), m:g(_) monitor [_ ? B when A > B] ff.
                                                   ^
           a variable of the signatures can be used if each of them binds it
         """},
        {"with m:f(_) when A > 1 monitor [_ ? b] ff.",
         """
         s:1:18: error: the variable `A` is not bound
           with m:f(_) when A > 1 monitor [_ ? b] ff.
                            ^
           a guard knows the variables of its pattern, of the signatures, and of the actions in front of it
         """},
        {"with m:f(_) monitor and([_ ? A] ff, [_ ? B when A > B] ff).",
         """
         s:1:49: error: the variable `A` is not bound
           with m:f(_) monitor and([_ ? A] ff, [_ ? B when A > B] ff).
                                                           ^
           a guard knows the variables of its pattern, of the signatures, and of the actions in front of it
         """},
        {"with m:f(_) monitor [_ ? a] X.",
         """
         s:1:29: error: the recursion variable `X` is not bound
           with m:f(_) monitor [_ ? a] X.
                                       ^
           it is bound by a `max X.` or `min X.` around it; `max X.(f)` ends at its parenthesis
         """},
        {"with m:f(_) monitor max X.([_ ? a] X) and [_ ? b] X.",
         """
         s:1:51: error: the recursion variable `X` is not bound
           with m:f(_) monitor max X.([_ ? a] X) and [_ ? b] X.
                                                             ^
           it is bound by a `max X.` or `min X.` around it; `max X.(f)` ends at its parenthesis
         """},
        {"with m:f(_) monitor max X. X.",
         """
         s:1:28: error: the recursion variable `X` is reached without an action in between
           with m:f(_) monitor max X. X.
                                      ^
           put a modality in front of it, as in `[P ? _] X`
         """},
        {"with m:f(_) monitor max X. (X and [_ ? a] ff).",
         """
         s:1:29: error: the recursion variable `X` is reached without an action in between
           with m:f(_) monitor max X. (X and [_ ? a] ff).
                                       ^
           put a modality in front of it, as in `[P ? _] X`
         """},
        {"with m:f(_) monitor max X. [_ ? a] max Y. and(X, Y).",
         """
         s:1:50: error: the recursion variable `Y` is reached without an action in between
           with m:f(_) monitor max X. [_ ? a] max Y. and(X, Y).
                                                            ^
           put a modality in front of it, as in `[P ? _] Y`
         """},
        {"with m:f(_) monitor [_ ? a] max X. max Y. X.",
         """
         s:1:43: error: the recursion variable `X` is reached without an action in between
           with m:f(_) monitor [_ ? a] max X. max Y. X.
                                                     ^
           put a modality in front of it, as in `[P ? _] X`
         """},
        {"with m:f(_) monitor [_ ? _@1] ff.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ ? _@1] ff.
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:22: warning: this branch can never be taken
           with m:f(_) monitor [_ ? _@1] ff.
                                ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         s:1:26: error: variables that begin with `_@` are reserved
           with m:f(_) monitor [_ ? _@1] ff.
                                    ^
         """},
        {"with m:f(_) monitor [_ ? {N, <<S, A:S, B:N>>}] ff.",
         """
         s:1:42: error: the variable `N` is not bound
           with m:f(_) monitor [_ ? {N, <<S, A:S, B:N>>}] ff.
                                                    ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """},
        {"with m:f(A) monitor [_ ? #{A := #{B := C}}] ff.",
         """
         s:1:35: error: the variable `B` is not bound
           with m:f(A) monitor [_ ? #{A := #{B := C}}] ff.
                                             ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """}]).

dialects_test_() ->
    shown([
        {"with m:f(_) monitor <_ ? a> ff.",
         """
         s:1:21: error: `<...>` is not part of sHML, which `monitor` stands for
           with m:f(_) monitor <_ ? a> ff.
                               ^
           use `check` for the whole logic
         """},
        {"with m:f(_) monitor [_ ? a] ff or [_ ? b] ff.",
         """
         s:1:21: error: `or` is not part of sHML, which `monitor` stands for
           with m:f(_) monitor [_ ? a] ff or [_ ? b] ff.
                               ^
           use `check` for the whole logic
         """},
        {"with m:f(_) monitor [_ ? a] or([_ ? a] ff, [_ ? b] ff).",
         """
         s:1:29: error: `or` is not part of sHML, which `monitor` stands for
           with m:f(_) monitor [_ ? a] or([_ ? a] ff, [_ ? b] ff).
                                       ^
           use `check` for the whole logic
         """},
        {"with m:f(_) monitor [_ ? a] min X. [_ ? a] X.",
         """
         s:1:29: error: `min` is not part of sHML, which `monitor` stands for
           with m:f(_) monitor [_ ? a] min X. [_ ? a] X.
                                       ^
           use `check` for the whole logic
         """}]).

names_test_() ->
    shown([
        {"a: with m:f(_) none.\n"
         "b: with m:g() none.\n"
         " a: with m:h() none.",
         """
         s:3:2: error: a property has the name `a` already
            a: with m:h() none.
            ^
           the first one is in line 1
         """}]).

characters_test_() ->
    shown([
        {"with m:f(_) monitor [_ ? 'a] ff.\n"
         "\n"
         "with m:f(_) none.",
         """
         s:1:26: error: unterminated atom starting with 'a] ff.\n\nwith m:f'
           with m:f(_) monitor [_ ? 'a] ff.
                                    ^
         """},
        {"with m:f(_) monitor [_ ? \"a] ff.\n"
         "\n"
         "with m:f(_) none.",
         """
         s:1:26: error: unterminated string starting with "a] ff.\n\nwith m:f"
           with m:f(_) monitor [_ ? "a] ff.
                                    ^
         """},
        {"with m:f(_) monitor\r\n"
         "[_ ? →] ff.",
         """
         s:2:6: error: illegal character
           [_ ? →] ff.
                ^
         """},
        {"with m:f(_) monitor [_ ? $",
         """
         s:1:26: error: unterminated character
           with m:f(_) monitor [_ ? $
                                    ^
         """}]).

empty_files_test_() ->
    shown([
        {"",
         """
         s: error: there is no property in this file
           a property is, for example, `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`
         """},
        {"% only\n"
         "% comments",
         """
         s: error: there is no property in this file
           a property is, for example, `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`
         """}]).

warnings_about_variables_test_() ->
    shown([
        {"with m:f(A), m:g(_) monitor [_ <- _, _] [_ ? A] ff.",
         """
         s:1:46: warning: `A` is a new variable here: not all of the signatures bind it
           with m:f(A), m:g(_) monitor [_ <- _, _] [_ ? A] ff.
                                                        ^
           a variable of the signatures can be used if each of them binds it
         """},
        {"with m:f(_)\n"
         "monitor [_ <- _, _] max X.([_ ? a] X and [_ ? b] max X.([_ ? c] X and [_ ? d] ff)).",
         """
         s:2:50: warning: this `X` hides another one
           monitor [_ <- _, _] max X.([_ ? a] X and [_ ? b] max X.([_ ? c] X and [_ ? d] ff)).
                                                            ^
           the other one is bound in line 2, column 21
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] max X.([_ ? a] X\n"
         "  and [_ ? b] ff and [_ ? c] min X.(<_ ? d> X or <_ ? e> tt)).",
         """
         s:3:30: warning: this `X` hides another one
             and [_ ? b] ff and [_ ? c] min X.(<_ ? d> X or <_ ? e> tt)).
                                        ^
           the other one is bound in line 2, column 19
         """}]).

slices_test_() ->
    shown([
        {"with m:f(_) per Id monitor [_ ? Id] ff.",
         """
         s:1:13: error: `per` needs an `over`
           with m:f(_) per Id monitor [_ ? Id] ff.
                       ^
           as in `per Id over _ ? {request, Id}, _ : _ ! {answer, Id}`: which events belong to which value
         """},
        {"with m:f(_) per over _ ? a monitor [_ ? a] ff.",
         """
         s:1:17: error: expected a variable after `per`, found `over`
           with m:f(_) per over _ ? a monitor [_ ? a] ff.
                           ^
         """},
        {"with m:f(_) over monitor [_ ? a] ff.",
         """
         s:1:18: error: this is not an action
           with m:f(_) over monitor [_ ? a] ff.
                            ^
           an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, `P returns m:f/1 -> V`
         """},
        {"with m:f(_) over _ ? a per Id monitor [_ ? a] ff.",
         """
         s:1:24: error: `per` has no place here
           with m:f(_) over _ ? a per Id monitor [_ ? a] ff.
                                  ^
           the order is `with`, `group`, `per`, `over`, `among`, `let`, and then `monitor` or `check`
         """},
        {"with m:f(_) over _ ? a group monitor [_ ? a] ff.",
         """
         s:1:24: error: `group` has no place here
           with m:f(_) over _ ? a group monitor [_ ? a] ff.
                                  ^
           the order is `with`, `group`, `per`, `over`, `among`, `let`, and then `monitor` or `check`
         """},
        {"with m:f(_) over _ ? a none.",
         """
         s:1:24: error: a signature with `none` takes no `per`, no `over` and no `let`
           with m:f(_) over _ ? a none.
                                  ^
         """},
        {"over _ ? {a, Id} monitor [_ ? {a, Id}] ff.",
         """
         s:1:1: error: `over` stands behind `with` or `per`
           over _ ? {a, Id} monitor [_ ? {a, Id}] ff.
           ^
           `with m:f(_)` says which processes it is about; `per V over ...` is about the values of `V` in all processes
         """},
        {"a: per Id monitor [_ ? {a, Id}] ff.",
         """
         s:1:4: error: `per` needs an `over`
           a: per Id monitor [_ ? {a, Id}] ff.
              ^
           as in `per Id over _ ? {request, Id}, _ : _ ! {answer, Id}`: which events belong to which value
         """},
        {"per Id group over _ ? {a, Id} monitor [_ ? {a, Id}] ff.",
         """
         s:1:1: error: `per` needs an `over`
           per Id group over _ ? {a, Id} monitor [_ ? {a, Id}] ff.
           ^
           as in `per Id over _ ? {request, Id}, _ : _ ! {answer, Id}`: which events belong to which value
         """},
        {"per Id over _ ? {a, Id}, C <- _, m:f(Id) check [_ ? _] [_ ** _] ff.",
         """
         s:1:48: warning: this formula can never be violated
           per Id over _ ? {a, Id}, C <- _, m:f(Id) check [_ ? _] [_ ** _] ff.
                                                          ^
           neither `ff` nor `<...>` can be reached in it
         s:1:57: warning: this branch can never be taken
           per Id over _ ? {a, Id}, C <- _, m:f(Id) check [_ ? _] [_ ** _] ff.
                                                                   ^
           no action of `over` lets such an event through
         """},
        {"with m:f(_) per A, B over _ ? {A, _}, _ : _ ! {A, B}, _ ? {x, B}, _ ** _\n"
         "monitor [_ ? {A, 1}] ff.",
         """
         s:1:27: error: this action binds `A` of `per`, but not `B`
           with m:f(_) per A, B over _ ? {A, _}, _ : _ ! {A, B}, _ ? {x, B}, _ ** _
                                     ^
           an action of `over` binds all variables of `per`, or none of them
         s:1:55: error: this action binds `B` of `per`, but not `A`
           with m:f(_) per A, B over _ ? {A, _}, _ : _ ! {A, B}, _ ? {x, B}, _ ** _
                                                                 ^
           an action of `over` binds all variables of `per`, or none of them
         """},
        {"with m:f(_) per A, B, C over _ ? {req, A}, _ : _ ! {A, B, C}\n"
         "monitor [_ ? {A, 1}] ff.",
         """
         s:1:30: error: this action binds `A` of `per`, but not `B` and `C`
           with m:f(_) per A, B, C over _ ? {req, A}, _ : _ ! {A, B, C}
                                        ^
           an action of `over` binds all variables of `per`, or none of them
         """},
        {"with m:f(_) per Id over _ ? {req, _}, _ ** _ monitor [_ ? {req, x}] ff.",
         """
         s:1:17: error: no action of `over` binds `Id`
           with m:f(_) per Id over _ ? {req, _}, _ ** _ monitor [_ ? {req, x}] ff.
                           ^
           an instance begins with an event that gives the variables of `per` their values
         """},
        {"with m:f(_) per A, B over _ ? {req, _}, _ ** _ monitor [_ ? {req, x}] ff.",
         """
         s:1:17: error: no action of `over` binds `A` and `B`
           with m:f(_) per A, B over _ ? {req, _}, _ ** _ monitor [_ ? {req, x}] ff.
                           ^
           an instance begins with an event that gives the variables of `per` their values
         """},
        {"with m:f(Id) per Id over _ ? {req, Id} monitor [_ ? {req, Id}] ff.",
         """
         s:1:18: error: the variable `Id` of `per` is bound by a signature
           with m:f(Id) per Id over _ ? {req, Id} monitor [_ ? {req, Id}] ff.
                            ^
           it has one value for the whole monitor; the variables of `per` get theirs from the actions of `over`
         """},
        {"with m:f(_), m:g(Id) per Id over _ ? {req, Id} monitor [_ ? {req, Id}] ff.",
         """
         s:1:26: error: the variable `Id` of `per` is bound by a signature
           with m:f(_), m:g(Id) per Id over _ ? {req, Id} monitor [_ ? {req, Id}] ff.
                                    ^
           it has one value for the whole monitor; the variables of `per` get theirs from the actions of `over`
         """},
        {"with m:f(_) per A, B, A over _ ? {A, B} monitor [_ ? {A, B}] ff.",
         """
         s:1:23: error: `A` stands in `per` already
           with m:f(_) per A, B, A over _ ? {A, B} monitor [_ ? {A, B}] ff.
                                 ^
           name each variable once
         """},
        {"with m:f(_) per Id over _ ? {req, Id} when N > 1 monitor [_ ? {req, Id}] ff.",
         """
         s:1:44: error: the variable `N` is not bound
           with m:f(_) per Id over _ ? {req, Id} when N > 1 monitor [_ ? {req, Id}] ff.
                                                      ^
           a guard knows the variables of its pattern, of the signatures, and of the actions in front of it
         """},
        {"with m:f(_), m:g(A) over _ ? {req, A} monitor [_ ? {req, 1}] ff.",
         """
         s:1:36: warning: `A` is a new variable here: not all of the signatures bind it
           with m:f(_), m:g(A) over _ ? {req, A} monitor [_ ? {req, 1}] ff.
                                              ^
           a variable of the signatures can be used if each of them binds it
         """}]).

lets_with_variables_test_() ->
    shown([
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:72: error: `V` has a value for each `U`, and stands without arguments here
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? b when V] ff.
                                                                                  ^
           write `V(U)`, with a value for each
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, U} when V(U, 1)] ff.",
         """
         s:1:77: error: `V` has one variable, and 2 arguments here
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, U} when V(U, 1)] ff.
                                                                                       ^
           write `V(U)`, with a value for each
         """},
        {"with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? {b, U} when V(U)] ff.",
         """
         s:1:69: error: `V` has one value, and takes no arguments
           with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? {b, U} when V(U)] ff.
                                                                               ^
           one with a value for each user has its variable behind its name, as `let V(User) = ...`
         """},
        {"with m:f(_) let V(U) = once {_ ? a} check [_ <- _, _] [_ ? {b, U} when V(U)] ff.",
         """
         s:1:19: error: no condition of `V` binds `U`
           with m:f(_) let V(U) = once {_ ? a} check [_ <- _, _] [_ ? {b, U} when V(U)] ff.
                             ^
           an action in braces binds it, as in `{_ ? {login, User}}`, or a condition asks another `let` for it, as in `not Gone(User)`
         """},
        {"with m:f(_) let V(U, F) = once {_ ? {login, U}} check [_ <- _, _] [_ ? {b, U, F} when V(U, F)] ff.",
         """
         s:1:33: error: this action binds `U` of `V(U, F)`, but not `F`
           with m:f(_) let V(U, F) = once {_ ? {login, U}} check [_ <- _, _] [_ ? {b, U, F} when V(U, F)] ff.
                                           ^
           an action of a `let` binds all of its variables, or none: give what is about fewer variables a `let` of its own
         """},
        {"with m:f(U) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when V(A)] ff.",
         """
         s:1:19: error: `U` has a value already
           with m:f(U) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when V(A)] ff.
                             ^
           a variable of a `let` is a new one: give it another name
         """},
        {"with m:f(_) let V(U, U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when V(A, A)] ff.",
         """
         s:1:22: error: `U` is a variable of this `let` already
           with m:f(_) let V(U, U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when V(A, A)] ff.
                                ^
           name each variable once
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when W(A)] ff.",
         """
         s:1:17: warning: `V` is not used
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when W(A)] ff.
                           ^
           use it in or behind an action of the formula, as in `[{_ ? _ when V(U)}] ff`, or leave it out
         s:1:77: error: `W` is no `let` that is known here, and has arguments
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {b, A} when W(A)] ff.
                                                                                       ^
           as in `let W(User) = once {_ ? {login, User}}`, in front of what uses it
         """},
        {"with m:f(_) over {_ ? {b, A} when V(A)} let V(U) = once {_ ? {b, U}} check [_ ? {b, A} when V(A)] ff.",
         """
         s:1:35: error: `V` is no `let` that is known here, and has arguments
           with m:f(_) over {_ ? {b, A} when V(A)} let V(U) = once {_ ? {b, U}} check [_ ? {b, A} when V(A)] ff.
                                             ^
           as in `let V(User) = once {_ ? {login, User}}`, in front of what uses it
         """},
        {"with m:f(_) let A(U) = once {_ ? {a, U}} let V(U, F) = A(U) since {_ ? {b, U, F}} check [_ <- _, _] [_ ? {c, U, F} when V(U, F)] ff.",
         """
         s:1:58: error: the variable `U` is not bound
           with m:f(_) let A(U) = once {_ ? {a, U}} let V(U, F) = A(U) since {_ ? {b, U, F}} check [_ <- _, _] [_ ? {c, U, F} when V(U, F)] ff.
                                                                    ^
           this condition is about all values of the variables of `V(U, F)`, and asks only `let`s that have all of them as arguments; ask others in the guard of an action that binds them
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} or {_ ? b when U > 1} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.",
         """
         s:1:57: error: the variable `U` is not bound
           with m:f(_) let V(U) = once {_ ? {a, U}} or {_ ? b when U > 1} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.
                                                                   ^
           this condition is about all values of the variables of `V(U)`, and asks only `let`s that have all of them as arguments; ask others in the guard of an action that binds them
         """},
        {"with m:f(_) let V(U) = sum U of {_ ? {a, U}} or {_ ? b} check [_ <- _, _] [_ ? {c, U} when V(U) > 1] ff.",
         """
         s:1:28: error: the variable `U` is not bound
           with m:f(_) let V(U) = sum U of {_ ? {a, U}} or {_ ? b} check [_ <- _, _] [_ ? {c, U} when V(U) > 1] ff.
                                      ^
           what stands in front of `of` knows what all actions behind it bind, and what they know
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, V(1)}] ff.",
         """
         s:1:69: error: a value for a variable has no place in a pattern
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, V(1)}] ff.
                                                                               ^
           compare it in a guard, as in `{_ ? {bid, Item, N} when N =:= Highest(Item)}`
         """},
        {"with m:f(_) let V(u) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.",
         """
         s:1:19: error: expected a variable
           with m:f(_) let V(u) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.
                             ^
           as in `let Asked(User) = once {_ ? {request, User}}`: `Asked` has a value for each user
         """},
        {"with m:f(_) let V() = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.",
         """
         s:1:18: error: there is nothing in these parentheses
           with m:f(_) let V() = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.
                            ^
         """},
        {"with m:f(_) let V(U) once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.",
         """
         s:1:22: error: expected `=` and a value, found `once`
           with m:f(_) let V(U) once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.
                                ^
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? b] ff.",
         """
         s:1:17: warning: `V` is not used
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? b] ff.
                           ^
           use it in or behind an action of the formula, as in `[{_ ? _ when V(U)}] ff`, or leave it out
         """},
        {"with m:f(_) let V(U) = mean N of {_ ? {a, U, N}} check [_ <- _, _] [{_ ? {c, U} when V(U) > 1}] ff.",
         """
         s:1:86: warning: this is true of `none`, too: where nothing was counted, `V` is `none`, which is greater than any number
           with m:f(_) let V(U) = mean N of {_ ? {a, U, N}} check [_ <- _, _] [{_ ? {c, U} when V(U) > 1}] ff.
                                                                                                ^
           put `is_number(V)` in front
         """},
        {"with m:f(_) let V(U) = mean N of {_ ? {a, U, N}} check [_ <- _, _] [{_ ? {c, U} when is_number(V(U)), V(U) > 1}] ff.",
         ""},
        {"with m:f(_) let V(U) = count {_ ? {a, U}} check [_ <- _, _] max X(N = 0).([{_ ? {b, U} when V(U) > N}] ff and [_ ? {c, U}] X(V(U)) and [else] X(N)).",
         ""},
        {"with m:f(_) let V(U) = count {_ ? {a, U}} check max X(N = V(1)).([{_ ? {b, U} when V(U) > N}] ff and [else] X(V(1))).",
         """
         s:1:59: error: the variable `V` is not bound
           with m:f(_) let V(U) = count {_ ? {a, U}} check max X(N = V(1)).([{_ ? {b, U} when V(U) > N}] ff and [else] X(V(1))).
                                                                     ^
           a `let` has a value at an event: use it in or behind an action
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [_ ? {c, U} when V(U) > 3] ff.",
         ""},
        {"action Use(In) = {_ ? {c, U} when not In(U)}.\nwith m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [Use(V)] ff.",
         ""},
        {"action Use(In) = {_ ? {c, U} when not In(U)}.\nwith m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [Use(is_atom)] [_ ? {b, U} when V(U)] ff.",
         """
         s:2:65: error: this is no `let`, and `In` has arguments
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [Use(is_atom)] [_ ? {b, U} when V(U)] ff.
                                                                           ^
           in line 1, column 39
         """},
        {"action Use = {_ ? {c, U} when not V(U)}.\nwith m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] [Use] ff.",
         """
         s:1:35: error: the variable `V` is not bound in this definition
           action Use = {_ ? {c, U} when not V(U)}.
                                             ^
           a definition knows its parameters, and what its own actions bind
         """},
        {"with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] max X(N = 0).([_ ? {c, U} when N, V(U)] X(W(U)) and [else] X(N)).",
         """
         s:1:102: error: `W` with arguments is a formula, not a value
           with m:f(_) let V(U) = once {_ ? {a, U}} check [_ <- _, _] max X(N = 0).([_ ? {c, U} when N, V(U)] X(W(U)) and [else] X(N)).
                                                                                                                ^
           a value is what a guard can compute
         """},
        {"with m:f(_) let V(U) = once {_ ? #{U := 1}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.",
         """
         s:1:36: error: the variable `U` is not bound
           with m:f(_) let V(U) = once {_ ? #{U := 1}} check [_ <- _, _] [_ ? {c, U} when V(U)] ff.
                                              ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """}]).

lets_test_() ->
    shown([
        {"with m:f(_) let V check [_ ? a] ff.",
         """
         s:1:19: error: expected `=` and a value, found `check`
           with m:f(_) let V check [_ ? a] ff.
                             ^
         """},
        {"with m:f(_) let V = check [_ ? a] ff.",
         """
         s:1:21: error: expected a value, found `check`
           with m:f(_) let V = check [_ ? a] ff.
                               ^
           a value begins with `previously`, `once`, `count`, `sum`, `min`, `max` or `mean`, or is `{a} since {b}`
         """},
        {"with m:f(_) let V = {_ ? a} check [_ ? a] ff.",
         """
         s:1:29: error: expected `since`, found `check`
           with m:f(_) let V = {_ ? a} check [_ ? a] ff.
                                       ^
           a value begins with `previously`, `once`, `count`, `sum`, `min`, `max` or `mean`, or is `{a} since {b}`
         """},
        {"with m:f(_) let V = sometimes {_ ? a} check [_ ? a] ff.",
         """
         s:1:21: error: expected a value, found `sometimes`
           with m:f(_) let V = sometimes {_ ? a} check [_ ? a] ff.
                               ^
           a value begins with `previously`, `once`, `count`, `sum`, `min`, `max` or `mean`, or is `{a} since {b}`
         """},
        {"with m:f(_) let V = once check [_ ? a] ff.",
         """
         s:1:26: error: expected a condition behind `once`
           with m:f(_) let V = once check [_ ? a] ff.
                                    ^
           an action in braces, as in `{_ ? request}`, or a guard over `let`s in front of this one
         """},
        {"with m:f(_) let V = once within 5 {_ ? a} check [_ ? a] ff.",
         """
         s:1:33: error: `5` is not a duration: it needs a unit in the same line
           with m:f(_) let V = once within 5 {_ ? a} check [_ ? a] ff.
                                           ^
           as in `within 5 s`; the units of time are `ns`, `us`, `ms`, `s`, `min`, `h`, `d`
         """},
        {"with m:f(_) let V = once within 0 events {_ ? a} check [_ ? a] ff.",
         """
         s:1:33: error: expected a number of events from 1 on
           with m:f(_) let V = once within 0 events {_ ? a} check [_ ? a] ff.
                                           ^
           `within 1 event` is this event alone
         """},
        {"with m:f(_) let V = previously within 5 s {_ ? a} check [_ ? a] ff.",
         """
         s:1:32: error: `previously` has no window
           with m:f(_) let V = previously within 5 s {_ ? a} check [_ ? a] ff.
                                          ^
           it is about the event before, as in `previously {_ ? request}`
         """},
        {"with m:f(_) let V = once {a} check [_ ? a] ff.",
         """
         s:1:27: error: this is not an action
           with m:f(_) let V = once {a} check [_ ? a] ff.
                                     ^
           an action is one of `P -> C, m:f(A)`, `C <- P, m:f(A)`, `P ** R`, `P : Q ! M`, `P ? M`, `P calls m:f(A)`, `P returns m:f/1 -> V`
         """},
        {"with m:f(_) let V = once {else} check [_ ? a] ff.",
         """
         s:1:27: error: `else` has no place in a `let`
           with m:f(_) let V = once {else} check [_ ? a] ff.
                                     ^
           a condition names its events; `else` is for the formula, as in `[else] X`
         """},
        {"with m:f(_) let V = once {_ ? a at T} check [_ <- _, _] [_ ? a when V] ff.",
         """
         s:1:36: error: a condition of a `let` has no time of its own
           with m:f(_) let V = once {_ ? a at T} check [_ <- _, _] [_ ? a when V] ff.
                                              ^
           leave `at` out; `within` says from when on events count, as in `once within 5 s {_ ? request}`
         """},
        {"with m:f(_) let V = sum N {_ ? {n, N}} check [_ ? a] ff.",
         """
         s:1:27: error: expected `of` behind what `sum` is about
           with m:f(_) let V = sum N {_ ? {n, N}} check [_ ? a] ff.
                                     ^
           as in `sum N of {_ ? {pay, N}}`
         """},
        {"with m:f(_) let V = sum N of {_ ? {n, N}} or {_ ? b} check [_ <- _, _] [_ ? a when V > 2] ff.",
         """
         s:1:25: error: the variable `N` is not bound
           with m:f(_) let V = sum N of {_ ? {n, N}} or {_ ? b} check [_ <- _, _] [_ ? a when V > 2] ff.
                                   ^
           what stands in front of `of` knows what all actions behind it bind, and what they know
         """},
        {"with m:f(_) let V = once W let W = once {_ ? a} check [_ <- _, _] [_ ? a when V] ff.",
         """
         s:1:26: error: the variable `W` is not bound
           with m:f(_) let V = once W let W = once {_ ? a} check [_ <- _, _] [_ ? a when V] ff.
                                    ^
           a condition knows the variables of its pattern, of the signatures, of `per`, and of the `let`s in front
         """},
        {"with m:f(V) let V = once {_ ? a} check [_ <- _, _] [_ ? a when V] ff.",
         """
         s:1:17: error: `V` has a value already
           with m:f(V) let V = once {_ ? a} check [_ <- _, _] [_ ? a when V] ff.
                           ^
           a `let` is a new variable: give it another name
         """},
        {"with m:f(_) let V = once {_ ? a} let V = once {_ ? b} check [_ <- _, _] [_ ? a when V] ff.",
         """
         s:1:38: error: `V` has a value already
           with m:f(_) let V = once {_ ? a} let V = once {_ ? b} check [_ <- _, _] [_ ? a when V] ff.
                                                ^
           a `let` is a new variable: give it another name
         """},
        {"with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? a] ff.",
         """
         s:1:17: warning: `V` is not used
           with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? a] ff.
                           ^
           use it in or behind an action of the formula, as in `[{_ ? _ when V}] ff`, or leave it out
         """},
        {"with m:f(_) let V = once {_ ? a} check max X(N = V).([_ ? a when N] ff and [else] X(V)).",
         """
         s:1:50: error: the variable `V` is not bound
           with m:f(_) let V = once {_ ? a} check max X(N = V).([_ ? a when N] ff and [else] X(V)).
                                                            ^
           a `let` has a value at an event: use it in or behind an action
         """},
        {"with m:f(_) let V = once {_ ? a} check max X(V = 1).([_ ? a when V] ff and [else] X(V)).",
         """
         s:1:46: error: `V` has a value already
           with m:f(_) let V = once {_ ? a} check max X(V = 1).([_ ? a when V] ff and [else] X(V)).
                                                        ^
           a parameter is a new variable: give it another name
         """},
        {"with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? #{V := 1}] ff.",
         """
         s:1:59: error: the variable `V` is not bound
           with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? #{V := 1}] ff.
                                                                     ^
           the key of a map and the size of a binary need a value that is known before the pattern
         """},
        {"with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? a at V] ff.",
         """
         s:1:63: warning: `V` has a value already, so this action matches at exactly this time only
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? a at V] ff.
                                                                         ^
           give the time a new name, and compare both in a guard: `when U - V =< 5 s`
         """},
        {"with m:f(_) over _ ? a let V = once {_ ? b} check max X.([_ ? a when V] ff and [else] X).",
         """
         s:1:38: warning: no action of `over` lets an event through that this could match
           with m:f(_) over _ ? a let V = once {_ ? b} check max X.([_ ? a when V] ff and [else] X).
                                                ^
           add it to `over`
         """},
        {"with m:f(_) let V = once {_ ? a when false} check max X.([_ ? a when V] ff and [else] X).",
         """
         s:1:38: warning: this guard always fails
           with m:f(_) let V = once {_ ? a when false} check max X.([_ ? a when V] ff and [else] X).
                                                ^
           it is false for all values
         """},
        {"with m:f(_) let V = once {_ ? a} none.",
         """
         s:1:34: error: a signature with `none` takes no `per`, no `over` and no `let`
           with m:f(_) let V = once {_ ? a} none.
                                            ^
         """},
        {"with m:f(_) let V = once {_ ? a} over _ ? a check [_ ? a when V] ff.",
         """
         s:1:34: error: `over` has no place here
           with m:f(_) let V = once {_ ? a} over _ ? a check [_ ? a when V] ff.
                                            ^
           the order is `with`, `group`, `per`, `over`, `among`, `let`, and then `monitor` or `check`
         """},
        %% The values at two events are two values.
        {"with m:f(_) let N = count {_ ? a} check [_ <- _, _] [_ ? a when N =:= 1] [_ ? a when N =:= 2] ff.", ""},
        {"with m:f(_) let N = count {_ ? a} monitor [_ <- _, _] ([_ ? a when N > 5] ff and [_ ? a when N =< 5] [_ ? b] ff).", ""},
        {"with m:f(_) let V = once _ ? a check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:28: error: an action in a condition stands in braces, and only `or` between them
           with m:f(_) let V = once _ ? a check [_ <- _, _] [_ ? b when V] ff.
                                      ^
           as in `once {_ ? a} or {_ ? b}`; for the opposite give it a name, as in `let A = once within 1 event {_ ? a}`: then `not A`
         """},
        {"with m:f(_) let V = once not {_ ? a} check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:33: error: an action in a condition stands in braces, and only `or` between them
           with m:f(_) let V = once not {_ ? a} check [_ <- _, _] [_ ? b when V] ff.
                                           ^
           as in `once {_ ? a} or {_ ? b}`; for the opposite give it a name, as in `let A = once within 1 event {_ ? a}`: then `not A`
         """},
        {"with m:f(_) let V = average N of {_ ? {a, N}} check [_ <- _, _] [_ ? b when V > 1] ff.",
         """
         s:1:21: error: expected a value, found `average`
           with m:f(_) let V = average N of {_ ? {a, N}} check [_ <- _, _] [_ ? b when V > 1] ff.
                               ^
           a value begins with `previously`, `once`, `count`, `sum`, `min`, `max` or `mean`, or is `{a} since {b}`
         """},
        {"with m:f(_) let A = once {_ ? b} let V = once {_ ? a} or A check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:55: error: expected an action in braces behind `or`
           with m:f(_) let A = once {_ ? b} let V = once {_ ? a} or A check [_ <- _, _] [_ ? b when V] ff.
                                                                 ^
           a condition is actions, or a guard: give one of them a `let` of its own
         """},
        {"with m:f(_) let V = once {_ ? b} when true check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:34: error: a guard has no place here
           with m:f(_) let V = once {_ ? b} when true check [_ <- _, _] [_ ? b when V] ff.
                                            ^
           that of an action stands inside of its braces
         """},
        {"with m:f(_) let A = once {_ ? b}, let V = once {_ ? a} check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:33: error: no comma stands between `let`s
           with m:f(_) let A = once {_ ? b}, let V = once {_ ? a} check [_ <- _, _] [_ ? b when V] ff.
                                           ^
           leave it out
         """},
        {"with m:f(_) let V = count {_ ? a} or {_ ? b} since {_ ? d} check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:46: error: `since` has no place here
           with m:f(_) let V = count {_ ? a} or {_ ? b} since {_ ? d} check [_ <- _, _] [_ ? b when V] ff.
                                                        ^
           it stands between two conditions, without a word in front: `{a} since {b}`
         """},
        {"with m:f(_) check let V = count {_ ? a} [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:19: error: expected a formula, found `let`
           with m:f(_) check let V = count {_ ? a} [_ <- _, _] [_ ? b when V] ff.
                             ^
           it stands in front of `monitor` or `check`
         """},
        {"with m:f(_) let v = count {_ ? a} check [_ <- _, _] [_ ? b] ff.",
         """
         s:1:17: error: expected a variable behind `let`, found `v`
           with m:f(_) let v = count {_ ? a} check [_ <- _, _] [_ ? b] ff.
                           ^
           it begins with a capital letter, as in `let Asked = once {_ ? request}`
         """},
        {"with m:f(_) per I over _ ? {use, I}, _ ? all let V = once I =:= 1 monitor [{_ ? _ when V}] ff.",
         """
         s:1:59: warning: this does not hold at events before the first one with `I`: `over` lets some through without it
           with m:f(_) per I over _ ? {use, I}, _ ? all let V = once I =:= 1 monitor [{_ ? _ when V}] ff.
                                                                     ^
           ask without `I`, or let all actions of `over` bind the variables of `per`
         """},
        {"with m:f(X) per Id over _ ? {use, Id}, _ ? {all, _} let V = once {_ ? {all, Id}} monitor [{_ ? _ when V}] ff.",
         """
         s:1:67: warning: this does not hold at events before the first one with `Id`: `over` lets some through without it
           with m:f(X) per Id over _ ? {use, Id}, _ ? {all, _} let V = once {_ ? {all, Id}} monitor [{_ ? _ when V}] ff.
                                                                             ^
           ask without `Id`, or let all actions of `over` bind the variables of `per`
         """},
        {"with m:f(_) per I over _ ? {use, I}, _ ? {all, _} let V = once {_ ? {_, L} when L =:= I} monitor [{_ ? _ when V}] ff.",
         """
         s:1:65: warning: this does not hold at events before the first one with `I`: `over` lets some through without it
           with m:f(_) per I over _ ? {use, I}, _ ? {all, _} let V = once {_ ? {_, L} when L =:= I} monitor [{_ ? _ when V}] ff.
                                                                           ^
           ask without `I`, or let all actions of `over` bind the variables of `per`
         """},
        {"with m:f(_) per I over _ ? {use, I}, _ ? all let V = sum I of {_ ? all} or {_ ? {use, I}} monitor [{_ ? _ when V > 1}] ff.",
         """
         s:1:64: warning: this does not hold at events before the first one with `I`: `over` lets some through without it
           with m:f(_) per I over _ ? {use, I}, _ ? all let V = sum I of {_ ? all} or {_ ? {use, I}} monitor [{_ ? _ when V > 1}] ff.
                                                                          ^
           ask without `I`, or let all actions of `over` bind the variables of `per`
         """},
        {"with m:f(X) per Id over _ ? {use, Id}, _ : _ ! all let V = once {_ ? {use, Id}} monitor [{_ ? _ when V}] ff.", ""},
        {"with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b] ff.",
         """
         s:1:17: warning: `V` is not used
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b] ff.
                           ^
           use it in or behind an action of the formula, as in `[{_ ? _ when V > 3}] ff`, or leave it out
         """},
        {"with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when V] ff.",
         """
         s:1:41: warning: this formula can never be violated
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when V] ff.
                                                   ^
           neither `ff` nor `<...>` can be reached in it
         s:1:65: warning: this guard always fails
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when V] ff.
                                                                           ^
           it is false for all values
         """},
        {"with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when not V] ff.",
         """
         s:1:41: warning: this formula can never be violated
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when not V] ff.
                                                   ^
           neither `ff` nor `<...>` can be reached in it
         s:1:69: warning: this guard always fails
           with m:f(_) let V = count {_ ? a} check [_ <- _, _] [_ ? b when not V] ff.
                                                                               ^
           it is false for all values
         """},
        {"with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? b when V =:= 1] ff.",
         """
         s:1:40: warning: this formula can never be violated
           with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? b when V =:= 1] ff.
                                                  ^
           neither `ff` nor `<...>` can be reached in it
         s:1:66: warning: this guard always fails
           with m:f(_) let V = once {_ ? a} check [_ <- _, _] [_ ? b when V =:= 1] ff.
                                                                            ^
           it is false for all values
         """},
        {"with m:f(_) let V = mean N of {_ ? {n, N}} check [_ <- _, _] [_ ? b when V > 90] ff.",
         """
         s:1:74: warning: this is true of `none`, too: where nothing was counted, `V` is `none`, which is greater than any number
           with m:f(_) let V = mean N of {_ ? {n, N}} check [_ <- _, _] [_ ? b when V > 90] ff.
                                                                                    ^
           put `is_number(V)` in front
         """},
        {"with m:f(_) let V = mean N of {_ ? {n, N}} check [_ <- _, _] [_ ? b when is_number(V), V > 90] ff.", ""},
        {"with m:f(_) let V = max N of {_ ? {n, N}} let W = once V >= 3 andalso V =/= none check [_ <- _, _] [_ ? b when 3 < V; W] ff.",
         """
         s:1:116: warning: this is true of `none`, too: where nothing was counted, `V` is `none`, which is greater than any number
           with m:f(_) let V = max N of {_ ? {n, N}} let W = once V >= 3 andalso V =/= none check [_ <- _, _] [_ ? b when 3 < V; W] ff.
                                                                                                                              ^
           put `is_number(V)` in front
         """},
        {"with m:f(_) let V = max(1, 2) =:= 2 since {_ ? a} check [_ <- _, _] [_ ? b when V] ff.", ""},
        {"with m:f(_) let V = true since {_ ? a} check [_ <- _, _] [_ ? b when V] ff.", ""}]).

messages_of_otp_test_() ->
    shown([
        {"with m:f(_) monitor [_ ? call(X)] ff.",
         """
         s:1:26: error: wrong number of arguments for `call`
           with m:f(_) monitor [_ ? call(X)] ff.
                                    ^
           it is written `call(From, Request)`, or `call(From, Handler, Request)` for gen_event
         """},
        {"with m:f(_) monitor [_ ? cast(A, B)] ff.",
         """
         s:1:26: error: wrong number of arguments for `cast`
           with m:f(_) monitor [_ ? cast(A, B)] ff.
                                    ^
           it is written `cast(Message)`
         """},
        {"with m:f(_) monitor [_ : _ ! reply(From, _)] ff.",
         "s:1:36: error: the variable `From` is not bound\n"
         "  with m:f(_) monitor [_ : _ ! reply(From, _)] ff.\n"
         "                                     ^\n"
         "  a reply does not name its caller: bind it by `call(From, _)` in front, or write `reply(_, R)`, or "
         "`reply({_, Tag}, R)` for the tag"},
        {"with m:f(_) monitor [_ : _ ! reply(a, _)] ff.",
         """
         s:1:36: error: a reply does not name its caller
           with m:f(_) monitor [_ : _ ! reply(a, _)] ff.
                                              ^
           its first argument is `_`, the `From` of a call, or `{_, Tag}`
         """},
        {"with m:f(_) monitor [_ ? info({'$gen_cast', _})] ff.",
         """
         s:1:31: error: `info` leaves out the requests of OTP, and this is one of them
           with m:f(_) monitor [_ ? info({'$gen_cast', _})] ff.
                                         ^
           for what it is otherwise, write the pattern without `info(...)`
         """},
        {"with m:f(_) monitor [_ ? {a, call(F, X)}] ff.",
         """
         s:1:30: error: this is not an Erlang pattern
           with m:f(_) monitor [_ ? {a, call(F, X)}] ff.
                                        ^
           `call(...)`, `cast(...)`, `reply(...)` and the like stand for whole messages only
         """},
        {"with m:f(_) per F over _ ? call(F, _), _ : _ ! reply(F, _) monitor [_ ? {F, a}] ff.",
         """
         s:1:74: error: `F` stands for a call here: `over` has `reply(F, _)`
           with m:f(_) per F over _ ? call(F, _), _ : _ ! reply(F, _) monitor [_ ? {F, a}] ff.
                                                                                    ^
           it can be the first argument of `call` and `reply` only; a reply does not name its caller
         """}]).

records_test_() ->
    shown([
        {"-record(a, {b}).\n"
         "with m:f(_) monitor [_ ? #c{b = 1}] ff.",
         """
         s:2:26: error: the record `c` is not known
           with m:f(_) monitor [_ ? #c{b = 1}] ff.
                                    ^
           `-record(name, {field}).` or `-include("file.hrl").` at the top of the file declares it
         """},
        {"-record(a, {b}).\n"
         "with m:f(_) monitor [_ ? #a{c = 1}] ff.",
         """
         s:2:29: error: the record `a` has no field `c`
           with m:f(_) monitor [_ ? #a{c = 1}] ff.
                                       ^
         """},
        {"-record(a, {b}).\n"
         "with m:f(_) monitor [_ ? A when A#a.c > 1] ff.",
         """
         s:2:37: error: the record `a` has no field `c`
           with m:f(_) monitor [_ ? A when A#a.c > 1] ff.
                                               ^
         """},
        {"-record(a, {b}).\n"
         "-record(a, {b}).\n"
         "with m:f(_) none.",
         """
         s:2:1: error: the record `a` is there already
           -record(a, {b}).
           ^
           the first one is in line 1
         """},
        {"-record(a, {b, c, b}).\n"
         "with m:f(_) none.",
         """
         s:1:19: error: the field `b` stands twice
           -record(a, {b, c, b}).
                             ^
         """},
        {"-record(a).\n"
         "with m:f(_) none.",
         """
         s:1:10: error: this is not how a record is declared
           -record(a).
                    ^
           `-record(name, {field, other = Default}).`
         """},
        {"-include(\"a.hrl\").\n"
         "with m:f(_) none.",
         """
         s:1:10: error: cannot find `a.hrl`
           -include("a.hrl").
                    ^
           there is no folder to look in; the option `include` declares some
         """},
        {"-include(\"../a.hrl\").\n"
         "with m:f(_) none.",
         """
         s:1:10: error: `../a.hrl` may lie outside of the folders for included files
           -include("../a.hrl").
                    ^
           a path is relative, and goes down only
         """},
        {"-include(a).\n"
         "with m:f(_) none.",
         """
         s:1:2: error: this is not how a file is included
           -include(a).
            ^
           `-include("file.hrl").`
         """},
        {"-include_lib(\"a.hrl\").\n"
         "with m:f(_) none.",
         """
         s:1:2: error: not supported: `-include_lib`
           -include_lib("a.hrl").
            ^
           `-include` looks in the folder of the specification and in folders that were declared
         """},
        {"-export([a/1]).\n"
         "with m:f(_) none.",
         """
         s:1:2: error: the attribute `export` has no place here
           -export([a/1]).
            ^
           a specification begins with `-record` and `-include`, if need be
         """},
        {"-record(a, {b}).\n"
         "with m:f(_) monitor [_ ? A when A =:= #a{}] ff.",
         """
         s:2:39: error: a guard does not make records
           with m:f(_) monitor [_ ? A when A =:= #a{}] ff.
                                                 ^
           match the record in the pattern, or compare its fields: `R#name.field =:= Value`
         """},
        {"with m:f(_) monitor [_ ? A when is_record(A, r)] ff.",
         """
         s:1:46: error: the record `r` is not known
           with m:f(_) monitor [_ ? A when is_record(A, r)] ff.
                                                        ^
           `-record(name, {field}).` or `-include("file.hrl").` at the top of the file declares it
         """}]).

elixir_names_test_() ->
    shown([
        {"with My.App none.",
         """
         s:1:6: error: expected a signature
           with My.App none.
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with My.App.init none.",
         """
         s:1:6: error: expected a signature
           with My.App.init none.
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """},
        {"with my.App.init(_) none.",
         """
         s:1:6: error: expected a signature
           with my.App.init(_) none.
                ^
           a signature is written `m:f(A, B)`, or `My.Module.f(A, B)` for Elixir
         """}]).

branches_that_are_never_taken_test_() ->
    shown([
        {"with m:f(_) monitor [_ ? a] ff.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ ? a] ff.
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:22: warning: this branch can never be taken
           with m:f(_) monitor [_ ? a] ff.
                                ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) group monitor [_ ? a] ff.",
         """
         s:1:27: warning: this formula can never be violated
           with m:f(_) group monitor [_ ? a] ff.
                                     ^
           neither `ff` nor `<...>` can be reached in it
         s:1:28: warning: this branch can never be taken
           with m:f(_) group monitor [_ ? a] ff.
                                      ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? a> tt and [_ : _ ! b] ff.",
         """
         s:1:47: warning: this branch can never be taken
           with m:f(_) check [_ <- _, _] <_ ? a> tt and [_ : _ ! b] ff.
                                                         ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) monitor [_ <- _, _] [_ ? a] [_ <- _, m:g(_)] ff.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ <- _, _] [_ ? a] [_ <- _, m:g(_)] ff.
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:42: warning: this branch can never be taken
           with m:f(_) monitor [_ <- _, _] [_ ? a] [_ <- _, m:g(_)] ff.
                                                    ^
           only the first event of a process is its birth, and without `group` no other process is read
         """},
        {"with m:f(_) group monitor [_ <- _, _] [_ ? a] [_ <- _, m:g(_)] ff.",
         ""},
        {"with m:f(_) monitor [_ <- _, _] max X.([_ ? a] X and [_ <- _, _] X and [_ ? b] ff).",
         """
         s:1:55: warning: this branch can never be taken
           with m:f(_) monitor [_ <- _, _] max X.([_ ? a] X and [_ <- _, _] X and [_ ? b] ff).
                                                                 ^
           only the first event of a process is its birth, and without `group` no other process is read
         """},
        {"with m:f(_) monitor max X.([_ ? a] X and [_ <- _, _] X and [_ ? b] ff).",
         ""},
        {"with m:f(_) check [_ <- _, _] [_ ** normal] [_ ? a] ff and [_ ? b] ff.",
         """
         s:1:19: warning: this formula can never be violated
           with m:f(_) check [_ <- _, _] [_ ** normal] [_ ? a] ff and [_ ? b] ff.
                             ^
           neither `ff` nor `<...>` can be reached in it
         s:1:46: warning: this branch can never be taken
           with m:f(_) check [_ <- _, _] [_ ** normal] [_ ? a] ff and [_ ? b] ff.
                                                        ^
           a process has no events after its exit, and without `group` no other process is read
         s:1:61: warning: this branch can never be taken
           with m:f(_) check [_ <- _, _] [_ ** normal] [_ ? a] ff and [_ ? b] ff.
                                                                       ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) check <_ <- _, _> <_ ** _> (<_ ? a> tt or [_ ? b] ff).",
         """
         s:1:42: warning: this branch can never be taken
           with m:f(_) check <_ <- _, _> <_ ** _> (<_ ? a> tt or [_ ? b] ff).
                                                    ^
           a process has no events after its exit, and without `group` no other process is read
         s:1:56: warning: this branch can never be taken
           with m:f(_) check <_ <- _, _> <_ ** _> (<_ ? a> tt or [_ ? b] ff).
                                                                  ^
           a process has no events after its exit, and without `group` no other process is read
         """},
        {"with m:f(_) group check [_ <- _, _] [_ ** normal] [_ ? a] ff.",
         ""},
        {"with m:f(_) monitor [_ <- _, m:g(_)] ff.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ <- _, m:g(_)] ff.
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:22: warning: this branch can never be taken
           with m:f(_) monitor [_ <- _, m:g(_)] ff.
                                ^
           the birth that is read has one of the signatures of `with`, and none of them matches
         """},
        {"with m:f(_) monitor [_ <- _, m:f()] ff.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ <- _, m:f()] ff.
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:22: warning: this branch can never be taken
           with m:f(_) monitor [_ <- _, m:f()] ff.
                                ^
           the birth that is read has one of the signatures of `with`, and none of them matches
         """},
        {"with m:f(A), m:f(A, _) when A > 0 monitor [_ <- _, m:f(B, c) when A =:= 0] ff.",
         """
         s:1:43: warning: this formula can never be violated
           with m:f(A), m:f(A, _) when A > 0 monitor [_ <- _, m:f(B, c) when A =:= 0] ff.
                                                     ^
           neither `ff` nor `<...>` can be reached in it
         s:1:44: warning: this branch can never be taken
           with m:f(A), m:f(A, _) when A > 0 monitor [_ <- _, m:f(B, c) when A =:= 0] ff.
                                                      ^
           the birth that is read has one of the signatures of `with`, and none of them matches
         """},
        {"with m:f(1), m:f(2) monitor [_ <- _, m:f(2)] ff and [_ <- _, m:f(3)] ff.",
         """
         s:1:54: warning: this branch can never be taken
           with m:f(1), m:f(2) monitor [_ <- _, m:f(2)] ff and [_ <- _, m:f(3)] ff.
                                                                ^
           the birth that is read has one of the signatures of `with`, and none of them matches
         """},
        {"with m:f(_) over _ ? {req, _}, _ ** _\n"
         "monitor [_ ? {req, stop}] ff and [_ : _ ! _] ff and [_ ? {answer, _}] ff.",
         """
         s:2:35: warning: this branch can never be taken
           monitor [_ ? {req, stop}] ff and [_ : _ ! _] ff and [_ ? {answer, _}] ff.
                                             ^
           no action of `over` lets such an event through
         s:2:54: warning: this branch can never be taken
           monitor [_ ? {req, stop}] ff and [_ : _ ! _] ff and [_ ? {answer, _}] ff.
                                                                ^
           no action of `over` lets such an event through
         """},
        {"with m:f(N) over _ ? {N, X} when X > 0\n"
         "monitor [_ ? {N, 1}] ff and [_ ? {N, X} when X =< 0] ff and [_ ? {1, 1}] ff.",
         """
         s:2:30: warning: this branch can never be taken
           monitor [_ ? {N, 1}] ff and [_ ? {N, X} when X =< 0] ff and [_ ? {1, 1}] ff.
                                        ^
           no action of `over` lets such an event through
         """},
        {"with m:f(_) over _ <- _, _, _ ? a monitor [_ ? a] ff.",
         """
         s:1:43: warning: this formula can never be violated
           with m:f(_) over _ <- _, _, _ ? a monitor [_ ? a] ff.
                                                     ^
           neither `ff` nor `<...>` can be reached in it
         s:1:44: warning: this branch can never be taken
           with m:f(_) over _ <- _, _, _ ? a monitor [_ ? a] ff.
                                                      ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) over _ <- _, m:f(1), _ ? a monitor [_ ? a] ff.",
         ""},
        {"with m:f(_) over _ ? a, _ ? b monitor [_ ? a] [_ <- _, _] ff.",
         """
         s:1:39: warning: this formula can never be violated
           with m:f(_) over _ ? a, _ ? b monitor [_ ? a] [_ <- _, _] ff.
                                                 ^
           neither `ff` nor `<...>` can be reached in it
         s:1:48: warning: this branch can never be taken
           with m:f(_) over _ ? a, _ ? b monitor [_ ? a] [_ <- _, _] ff.
                                                          ^
           only the first event of a process is its birth, and without `group` no other process is read
         """},
        {"with m:f(_) per Id over _ ? {req, Id}, _ : _ ! {res, Id}, _ ** _\n"
         "monitor [_ ? {req, Id}] [_ ** _] ff and [_ ** _] ff.",
         """
         s:2:42: warning: this branch can never be taken
           monitor [_ ? {req, Id}] [_ ** _] ff and [_ ** _] ff.
                                                    ^
           an instance begins with an event that gives the variables of `per` their values
         """}]).

what_only_the_end_can_violate_test_() ->
    shown([
        {"with m:f(_) check <_ <- _, _> min X.(<_ ? a> tt or <else> X).", ""},
        {"with m:f(_) check [_ <- _, _] min X.(<_ ? a> tt or <else> X).",
         """
         s:1:19: warning: only the end of the trace can violate this formula
           with m:f(_) check [_ <- _, _] min X.(<_ ? a> tt or <else> X).
                             ^
           what it waits for may come as long as the process runs; `within 5 s` in front of what has to come gives it a time
         """},
        {"with m:f(_) check [_ <- _, _] within 5 s min X.(<_ ? a> tt or <else> X).", ""},
        {"with m:f(_) check [_ <- _, _] min X.(<_ ? a> <_ ? b> tt or <else> X).", ""},
        {"with m:f(_) check max X.([_ ? a] (X and min Y.(<_ : _ ! b> tt or <else> Y)) and [else] X).",
         """
         s:1:19: warning: only the end of the trace can violate this formula
           with m:f(_) check max X.([_ ? a] (X and min Y.(<_ : _ ! b> tt or <else> Y)) and [else] X).
                             ^
           what it waits for may come as long as the process runs; `within 5 s` in front of what has to come gives it a time
         """},
        {"with m:f(_) check max X.([_ ? a] (X and min Y.(<_ : _ ! b> tt or <else> Y)) and [_ ? c] ff and [else] X).", ""},
        {"with m:f(_) check [_ <- _, _] min X.(<_ ? a> tt or [_ ? b] ff or <else> X).", ""},
        {"with m:f(_) check [_ <- _, _] min X.(<_ ? a> tt or <_ ? _> X).", ""}]).

formulas_with_one_verdict_test_() ->
    shown([
        {"with m:f(_) monitor [_ <- _, _] max X.[_ ? a] X.",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ <- _, _] max X.[_ ? a] X.
                               ^
           neither `ff` nor `<...>` can be reached in it
         """},
        {"with m:f(_) check [_ <- _, _] [_ ? a] (ff or tt).",
         """
         s:1:19: warning: this formula can never be violated
           with m:f(_) check [_ <- _, _] [_ ? a] (ff or tt).
                             ^
           neither `ff` nor `<...>` can be reached in it
         """},
        {"with m:f(_) check tt.",
         """
         s:1:19: warning: this formula can never be violated
           with m:f(_) check tt.
                             ^
           neither `ff` nor `<...>` can be reached in it
         """},
        {"with m:f(_) check\n"
         "  min X.<_ <- _, _> X.",
         """
         s:2:3: warning: this formula can never be satisfied
             min X.<_ <- _, _> X.
             ^
           neither `tt` nor `[...]` can be reached in it
         """},
        {"with m:f(_) check ff.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check ff.
                             ^
           neither `tt` nor `[...]` can be reached in it
         """},
        {"with m:f(_) check <_ <- _, _> (ff and [_ ? b] ff).",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check <_ <- _, _> (ff and [_ ? b] ff).
                             ^
           neither `tt` nor `[...]` can be reached in it
         """},
        {"with m:f(_) check [_ <- _, m:f(_)] min X.<_ ? a> X.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, m:f(_)] min X.<_ ? a> X.
                             ^
           neither `tt` nor `[...]` can be reached in it
         """},
        {"with m:f(_) check [_ <- _, m:f(1)] min X.<_ ? a> X.",
         ""},
        {"with m:f(_) monitor [_ <- _, _] ff.",
         """
         s:1:21: warning: this formula can never be satisfied
           with m:f(_) monitor [_ <- _, _] ff.
                               ^
           neither `tt` nor `[...]` can be reached in it
         """},
        {"with m:f(_) check [_ <- _, _] [_ ? a] <_ ? b> tt.",
         ""},
        {"with m:f(_) check [_ <- _, _] max X.([_ ? a] X and [_ ? b] ff).",
         ""},
        {"with m:f(_) monitor [_ <- _, _] max X.([_ ** _] [_ ? a] ff and [_ ? _] X).",
         """
         s:1:21: warning: this formula can never be violated
           with m:f(_) monitor [_ <- _, _] max X.([_ ** _] [_ ? a] ff and [_ ? _] X).
                               ^
           neither `ff` nor `<...>` can be reached in it
         s:1:50: warning: this branch can never be taken
           with m:f(_) monitor [_ <- _, _] max X.([_ ** _] [_ ? a] ff and [_ ? _] X).
                                                            ^
           a process has no events after its exit, and without `group` no other process is read
         """}]).

overlapping_branches_test_() ->
    shown([
        {"with m:f(_) monitor [_ <- _, _] and([_ ? {a,B}] ff, [_ ? {a,C}] ff).",
         """
         s:1:54: warning: this branch can match the same event as an earlier one
           with m:f(_) monitor [_ <- _, _] and([_ ? {a,B}] ff, [_ ? {a,C}] ff).
                                                                ^
           the earlier one is in line 1, column 38; both will have to hold
         """},
        {"with m:f(_) monitor [_ <- _, _] and([_ ? _] ff,\n"
         " [_ ? {a, _}] ff, [_ : _ ! _] ff).",
         """
         s:2:3: warning: this branch can match the same event as an earlier one
            [_ ? {a, _}] ff, [_ : _ ! _] ff).
             ^
           the earlier one is in line 1, column 38; both will have to hold
         """},
        {"with m:f(_) monitor [_ <- _, _] and([_ ? B when B > 1] ff, [_ ? B when B > 1] ff).",
         """
         s:1:61: warning: this branch can match the same event as an earlier one
           with m:f(_) monitor [_ <- _, _] and([_ ? B when B > 1] ff, [_ ? B when B > 1] ff).
                                                                       ^
           the earlier one is in line 1, column 38; both will have to hold
         """},
        {"with m:f(_) monitor [_ <- _, _] and([_ ? B when B > 1] ff, [_ ? B when B > 2] ff).",
         ""},
        {"with m:f(_) monitor [_ <- _, _] and([_ ? {B, B}] ff, [_ ? {1, 2}] ff).",
         ""},
        {"with m:f(B) monitor [_ <- _, _] and([_ ? B] ff, [_ ? 2] ff).",
         ""},
        {"with m:f(_) check [_ <- _, _] and([_ ? {a,B}] ff, [_ ? {a,C}] ff).",
         ""}]).

guards_that_fail_test_() ->
    shown([
        {"with m:f(_) check [_ <- _, _] <{_ ? X when 1 > 2}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 > 2}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:46: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 > 2}> tt.
                                                        ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when false> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when false> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:43: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when false> tt.
                                                     ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when X =/= X> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when X =/= X> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:45: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when X =/= X> tt.
                                                       ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when 5> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when 5> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:43: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when 5> tt.
                                                     ^
           a test is `true` or `false`, and this is neither
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X), is_list(X)> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X), is_list(X)> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:55: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X), is_list(X)> tt.
                                                                 ^
           `X` is an atom here
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X) and is_list(X)> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X) and is_list(X)> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:58: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when is_atom(X) and is_list(X)> tt.
                                                                    ^
           `X` is an atom here
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when not is_atom(X), is_boolean(X)> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when not is_atom(X), is_boolean(X)> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:59: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when not is_atom(X), is_boolean(X)> tt.
                                                                     ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when is_integer(X) andalso X =:= a> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when is_integer(X) andalso X =:= a> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:67: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when is_integer(X) andalso X =:= a> tt.
                                                                             ^
           `X` is an integer here
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when X =:= a, X =:= b> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when X =:= a, X =:= b> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:54: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when X =:= a, X =:= b> tt.
                                                                ^
           it contradicts the test in line 1, column 45
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when X > 5, 3 > X}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when X > 5, 3 > X}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:53: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when X > 5, 3 > X}> tt.
                                                               ^
           it contradicts the test in line 1, column 46
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when X > 5 andalso X =:= 4}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when X > 5 andalso X =:= 4}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:60: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when X > 5 andalso X =:= 4}> tt.
                                                                      ^
           it contradicts the test in line 1, column 46
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when hd(X) > 1, is_tuple(X)}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when hd(X) > 1, is_tuple(X)}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:55: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when hd(X) > 1, is_tuple(X)}> tt.
                                                                 ^
           `X` is a list with elements here
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when length(X) > 1, X < 3}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when length(X) > 1, X < 3}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:61: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when length(X) > 1, X < 3}> tt.
                                                                       ^
           `X` is a list here
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when 1 + a > 2}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 + a > 2}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:48: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 + a > 2}> tt.
                                                          ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when 1 div 0 > X}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 div 0 > X}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:46: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when 1 div 0 > X}> tt.
                                                        ^
           this cannot be calculated
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when self() =:= a> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when self() =:= a> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:50: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when self() =:= a> tt.
                                                            ^
           it is false for all values
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] <_ ? X when is_atom(X), is_list(X); X =:= 1, X =:= 2> tt.",
         """
         s:2:7: warning: this formula can never be satisfied
           check [_ <- _, _] <_ ? X when is_atom(X), is_list(X); X =:= 1, X =:= 2> tt.
                 ^
           neither `tt` nor `[...]` can be reached in it
         s:2:43: warning: this guard always fails
           check [_ <- _, _] <_ ? X when is_atom(X), is_list(X); X =:= 1, X =:= 2> tt.
                                                     ^
           `X` is an atom here
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when is_atom(X), is_list(X); X > 1}> tt.",
         ""},
        {"with m:f(_) check [_ <- _, _] <_ ? X when true> tt.",
         ""},
        {"with m:f(_) check [_ <- _, _] <_ ? X when X =:= X> tt.",
         ""},
        {"with m:f(_)\n"
         "check [_ <- _, _] <_ ? X when is_list(X) orelse is_tuple(X), not is_list(X), element(1, X) =:= a> tt.",
         ""},
        {"with m:f(_) check [_ <- _, _] <_ ? X when is_number(X), is_binary(X)> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <_ ? X when is_number(X), is_binary(X)> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:57: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <_ ? X when is_number(X), is_binary(X)> tt.
                                                                   ^
           `X` is a number here
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] <_ ? X when (is_list(X) orelse is_tuple(X)) and is_map(X)> tt.",
         """
         s:2:7: warning: this formula can never be satisfied
           check [_ <- _, _] <_ ? X when (is_list(X) orelse is_tuple(X)) and is_map(X)> tt.
                 ^
           neither `tt` nor `[...]` can be reached in it
         s:2:67: warning: this guard always fails
           check [_ <- _, _] <_ ? X when (is_list(X) orelse is_tuple(X)) and is_map(X)> tt.
                                                                             ^
           `X` is a list or a tuple here
         """},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when X, X > 1}> tt.",
         ""},
        {"with m:f(_) check [_ <- _, _] <{_ ? X when is_map(X), map_size(X) > a}> tt.",
         """
         s:1:19: warning: this formula can never be satisfied
           with m:f(_) check [_ <- _, _] <{_ ? X when is_map(X), map_size(X) > a}> tt.
                             ^
           neither `tt` nor `[...]` can be reached in it
         s:1:67: warning: this guard always fails
           with m:f(_) check [_ <- _, _] <{_ ? X when is_map(X), map_size(X) > a}> tt.
                                                                             ^
           it is false for all values
         """},
        {"with m:f(_) check [_ <- _, _] <_ ? X when map_size(X) < a> tt.",
         ""},
        {"with m:f(_)\n"
         "check [_ <- _, _] ([_ ? {a, X = {_, _}} when is_list(X)] ff and <_ ? b> tt).",
         """
         s:2:46: warning: this guard always fails
           check [_ <- _, _] ([_ ? {a, X = {_, _}} when is_list(X)] ff and <_ ? b> tt).
                                                        ^
           `X` is a tuple here
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] ([_ ? <<X:8, Y/binary>> when is_binary(X); is_list(Y)] ff and <_ ? b> tt).",
         """
         s:2:48: warning: this guard always fails
           check [_ <- _, _] ([_ ? <<X:8, Y/binary>> when is_binary(X); is_list(Y)] ff and <_ ? b> tt).
                                                          ^
           `X` is an integer here
         """},
        {"with m:f(N) when is_integer(N)\n"
         "check [_ <- _, _] ([_ ? {N, b} when is_atom(N)] ff and <_ ? b> tt).",
         """
         s:2:37: warning: this guard always fails
           check [_ <- _, _] ([_ ? {N, b} when is_atom(N)] ff and <_ ? b> tt).
                                               ^
           `N` is an integer here
         """},
        {"with m:f(N) when is_atom(N), m:g(_, N) when is_list(N)\n"
         "check [_ <- _, _] ([_ ? b when N > 1, is_map(N)] ff and <_ ? b> tt).",
         """
         s:2:39: warning: this guard always fails
           check [_ <- _, _] ([_ ? b when N > 1, is_map(N)] ff and <_ ? b> tt).
                                                 ^
           `N` is a list or an atom here
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] [_ ? X when is_atom(X)] ([_ ? {X, Y} when X < 1] ff and <_ ? Y when is_atom(Y)> tt).",
         """
         s:2:63: warning: this guard always fails
           check [_ <- _, _] [_ ? X when is_atom(X)] ([_ ? {X, Y} when X < 1] ff and <_ ? Y when is_atom(Y)> tt).
                                                                         ^
           `X` is an atom here
         """},
        {"with m:f(_) check [_ <- _, _] ([P ? _ when P =:= server] ff and <_ ? b> tt).",
         """
         s:1:46: warning: this guard always fails
           with m:f(_) check [_ <- _, _] ([P ? _ when P =:= server] ff and <_ ? b> tt).
                                                        ^
           `P` is a process here
         """},
        {"with m:f(X) when X > 1, X =:= 0 check [_ <- _, _] [_ ? X] ff.",
         """
         s:1:27: warning: this guard always fails
           with m:f(X) when X > 1, X =:= 0 check [_ <- _, _] [_ ? X] ff.
                                     ^
           it contradicts the test in line 1, column 20
         """},
        {"with m:f(_) over _ ? {req, X} when is_atom(X), X > 5, X < 3, X =:= {}\n"
         "monitor [_ ? {req, stop}] ff.",
         """
         s:1:57: warning: this guard always fails
           with m:f(_) over _ ? {req, X} when is_atom(X), X > 5, X < 3, X =:= {}
                                                                   ^
           `X` is an atom here
         """},
        {"with m:f(_) per X over _ ? {req, X} when is_atom(X), _ ? {res, X} when is_atom(X)\n"
         "monitor [_ ? {req, X} when is_list(X)] ff and [_ ? a] ff.",
         """
         s:2:9: warning: this formula can never be violated
           monitor [_ ? {req, X} when is_list(X)] ff and [_ ? a] ff.
                   ^
           neither `ff` nor `<...>` can be reached in it
         s:2:28: warning: this guard always fails
           monitor [_ ? {req, X} when is_list(X)] ff and [_ ? a] ff.
                                      ^
           `X` is an atom here
         s:2:48: warning: this branch can never be taken
           monitor [_ ? {req, X} when is_list(X)] ff and [_ ? a] ff.
                                                          ^
           no action of `over` lets such an event through
         """}]).

patterns_that_nothing_matches_test_() ->
    shown([
        {"with m:f(_) check [_ <- _, _] ([server ? a] ff and <_ ? b> tt).",
         """
         s:1:33: warning: nothing can match this pattern
           with m:f(_) check [_ <- _, _] ([server ? a] ff and <_ ? b> tt).
                                           ^
           a process is a pid
         """},
        {"with m:f(_) check [_ <- _, _] ([_ -> server, m:f(_)] ff and <_ ? b> tt).",
         """
         s:1:38: warning: nothing can match this pattern
           with m:f(_) check [_ <- _, _] ([_ -> server, m:f(_)] ff and <_ ? b> tt).
                                                ^
           a process is a pid
         """},
        {"with m:f(_) check [_ <- init, _] ff or <_ <- undefined, _> tt.",
         """
         s:1:19: warning: this formula can never be violated
           with m:f(_) check [_ <- init, _] ff or <_ <- undefined, _> tt.
                             ^
           neither `ff` nor `<...>` can be reached in it
         s:1:25: warning: nothing can match this pattern
           with m:f(_) check [_ <- init, _] ff or <_ <- undefined, _> tt.
                                   ^
           a process is a pid
         """},
        {"with m:f(_) check [_ <- _, _] [_ : \"server\" ! a] ff and [_ : server ! a] ff.",
         """
         s:1:19: warning: this formula can never be violated
           with m:f(_) check [_ <- _, _] [_ : "server" ! a] ff and [_ : server ! a] ff.
                             ^
           neither `ff` nor `<...>` can be reached in it
         s:1:36: warning: nothing can match this pattern
           with m:f(_) check [_ <- _, _] [_ : "server" ! a] ff and [_ : server ! a] ff.
                                              ^
           a message is sent to a pid, a port, a name, `{Name, Node}` or an alias, which is a reference
         s:1:58: warning: this branch can never be taken
           with m:f(_) check [_ <- _, _] [_ : "server" ! a] ff and [_ : server ! a] ff.
                                                                    ^
           the first event of a process is its birth: put `[_ <- _, _]` in front
         """},
        {"with m:f(_) check [_ <- _, _] ([_ ? {a, _} = [_ | _]] ff and <_ ? b> tt).",
         """
         s:1:37: warning: nothing can match this pattern
           with m:f(_) check [_ <- _, _] ([_ ? {a, _} = [_ | _]] ff and <_ ? b> tt).
                                               ^
           its parts contradict each other
         """},
        {"with m:f(_)\n"
         "check [_ <- _, _] ([_ ? {ok, X} when is_integer(X)] [X ? a] ff and <_ ? b> tt).",
         """
         s:2:54: warning: nothing can match this pattern
           check [_ <- _, _] ([_ ? {ok, X} when is_integer(X)] [X ? a] ff and <_ ? b> tt).
                                                                ^
           `X` is an integer here
         """}]).

functions_of_modules_test_() ->
    shown(#{exports => fun exports/1}, [
        {"with calc_server:loop(_) none.",
         ""},
        {"with lists:map(_, _), lists:map(_), lists:mop(_, _) none.",
         """
         s:1:29: warning: the module `lists` has no function `map/1`
           with lists:map(_, _), lists:map(_), lists:mop(_, _) none.
                                       ^
           it has `map/2`
         s:1:43: warning: the module `lists` has no function `mop/2`
           with lists:map(_, _), lists:map(_), lists:mop(_, _) none.
                                                     ^
           it has `map/2` and `map/1`
         """},
        {"with lists:nothing(_) none.",
         """
         s:1:12: warning: the module `lists` has no function `nothing/1`
           with lists:nothing(_) none.
                      ^
           it is the function that a process was spawned with; for a `gen_server` and the like, `init/1`
         """},
        {"with no_such_module:f(_), no_such_module:g(_) none.",
         """
         s:1:6: warning: there is no module `no_such_module` on the code path
           with no_such_module:f(_), no_such_module:g(_) none.
                ^
           a process with such a signature can only come from a module that is loaded later
         """},
        {"with damaged_module:f(_), damaged_module:g(_) none.",
         """
         s:1:6: warning: the object code of the module `damaged_module` cannot be read
           with damaged_module:f(_), damaged_module:g(_) none.
                ^
           its file is damaged, or compiled for a later release of Erlang/OTP
         """},
        {"with lists:'-f/1-fun-0-'() none.",
         ""},
        {"with gen_event:init(_) none.",
         ""},
        {"with lists:map(_, _)\n"
         "monitor [_ <- _, lists:mup(_, _)] [_ -> _, gen_server:start()] ff.",
         """
         s:2:9: warning: this formula can never be violated
           monitor [_ <- _, lists:mup(_, _)] [_ -> _, gen_server:start()] ff.
                   ^
           neither `ff` nor `<...>` can be reached in it
         s:2:10: warning: this branch can never be taken
           monitor [_ <- _, lists:mup(_, _)] [_ -> _, gen_server:start()] ff.
                    ^
           the birth that is read has one of the signatures of `with`, and none of them matches
         s:2:24: warning: the module `lists` has no function `mup/2`
           monitor [_ <- _, lists:mup(_, _)] [_ -> _, gen_server:start()] ff.
                                  ^
           it has `map/2`
         s:2:55: warning: the module `gen_server` has no function `start/0`
           monitor [_ <- _, lists:mup(_, _)] [_ -> _, gen_server:start()] ff.
                                                                 ^
           it has `start/3` and `start/4`
         """},
        {"with M:f(_), lists:F(_) none.",
         ""},
        {"with lists:map(_, _) over _ -> _, lists:seq(_) monitor [_ -> _, lists:seq(1)] ff.",
         """
         s:1:41: warning: the module `lists` has no function `seq/1`
           with lists:map(_, _) over _ -> _, lists:seq(_) monitor [_ -> _, lists:seq(1)] ff.
                                                   ^
           it has `seq/2` and `seq/3`
         """}]).

what_is_about_all_processes_needs_central_monitoring_test_() ->
    shown(#{central => false}, [
        {"with m:f(_) check [_ <- _, _] <_ ? a> tt.\nall: per Id over _ ? {a, Id} check <_ ? _> <_ ? _> tt.",
         """
         s:2:1: error: a property without `with` is about all processes together, which only central monitoring sees
           all: per Id over _ ? {a, Id} check <_ ? _> <_ ? _> tt.
           ^
           watch centrally (`--instrument central`), or say with `with m:f(_)` which processes it is about, each by itself
         """}]).

whom_a_property_about_all_processes_reads_test_() ->
    shown(#{exports => fun exports/1}, [
        {"per Id over _ ? {a, Id} among calc_server:loop(Id) check [_ ? _] ff.",
         """
         s:1:48: error: `Id` of `among` is used elsewhere, and is another one there: a signature of `among` only says which processes are read
           per Id over _ ? {a, Id} among calc_server:loop(Id) check [_ ? _] ff.
                                                          ^
           give it another name, or write `_`; what a process is spawned with can be read from its birth, as in `over C <- _, m:f(V)`
         """},
        {"per Id over _ ? {a, Id} among calc_server:loop(A) check [_ ? {_, A}] ff.",
         """
         s:1:48: error: `A` of `among` is used elsewhere, and is another one there: a signature of `among` only says which processes are read
           per Id over _ ? {a, Id} among calc_server:loop(A) check [_ ? {_, A}] ff.
                                                          ^
           give it another name, or write `_`; what a process is spawned with can be read from its birth, as in `over C <- _, m:f(V)`
         """},
        {"per Id over _ ? {a, Id} among calc_server:loop(N) when N > M check [_ ? _] ff.",
         """
         s:1:60: error: the variable `M` is not bound
           per Id over _ ? {a, Id} among calc_server:loop(N) when N > M check [_ ? _] ff.
                                                                      ^
           a guard knows the variables of its pattern, of the signatures, and of the actions in front of it
         """},
        {"per Id over _ ? {a, Id} among calc_server:lop(_) check [_ ? _] ff.",
         """
         s:1:43: warning: the module `calc_server` has no function `lop/1`
           per Id over _ ? {a, Id} among calc_server:lop(_) check [_ ? _] ff.
                                                     ^
           it has `loop/1`
         """},
        {"with calc_server:loop(_) over _ ? {a, _} among calc_server:loop(_) check [_ ? _] ff.",
         """
         s:1:42: error: `among` is for properties without `with`
           with calc_server:loop(_) over _ ? {a, _} among calc_server:loop(_) check [_ ? _] ff.
                                                    ^
           `with` says which processes have a monitor each; `per V over ... among m:f(_)` is about all of these together
         """}]).

what_processes_were_spawned_with_is_not_known_of_those_that_run_test_() ->
    shown(#{attach => true}, [
        {"per Id over _ ? {a, Id} among m:f(_), m:g(N), m:f(1) check [_ ? _] ff.",
         """
         s:1:47: error: this depends on the arguments that a process was spawned with, which are not known of one that was running already
           per Id over _ ? {a, Id} among m:f(_), m:g(N), m:f(1) check [_ ? _] ff.
                                                         ^
           write `_` for what is not known, or start the system under observation
         """}]).

%% As a code server would tell.
exports(calc_server) -> [{start, 1}, {loop, 1}];
exports(gen_event) -> [{start, 0}, {start, 1}];
exports(gen_server) -> [{start, 3}, {start, 4}, {start_link, 3}];
exports(lists) -> lists:module_info(exports);
exports(damaged_module) -> unreadable;
exports(_) -> unknown.

shown(Cases) -> shown(#{}, Cases).

shown(Options, Cases) ->
    [{Source, ?_assertEqual(string:split(Expected, "\n", all), said(Source, Options))} || {Source, Expected} <- Cases].

%% In lines. An error means that nothing was compiled.
said(Source, Options) ->
    Name = <<"s">>,
    Diagnostics = case witness_spec:compile_string(Name, unicode:characters_to_binary(Source), Options) of
        {ok, Map, Warnings} ->
            ok = witness_spec:unload(Map),
            [] = [Warning || #{severity := Severity} = Warning <- Warnings, Severity =/= warning],
            Warnings;
        {error, {witness_spec, Errors}} ->
            [_ | _] = [Error || #{severity := error} = Error <- Errors],
            Errors
    end,
    Text = lists:join("\n", [witness_spec:format_diagnostic(Diagnostic) || Diagnostic <- Diagnostics]),
    string:split(unicode:characters_to_list(Text), "\n", all).

%% The rest is about the list as a whole, and about what cannot be written in a table.

every_property_is_read_though_others_are_wrong_test() ->
    Source = "with m:f(_) monitor max X. [_ ? {a, b] X.\n"
             "x: with n:g() check\n"
             "  [P ! a] ff.\n"
             "with m:f(_) monitor [_ ? a] Y.\n"
             "y: with m:f() monitor max X. [_ ? a] (ff.\n"
             "with m:f(_) monitor and([_ ? a when A] ff, <_ ? a> X).\n",
    ?assertEqual([{1, 38, syntax}, {3, 4, syntax}, {4, 29, unbound_recursion_variable}, {5, 41, syntax},
                  {6, 37, unbound_variable}, {6, 44, not_shml}, {6, 52, unbound_recursion_variable}], faults(Source)).

a_comma_may_stand_between_properties_test() ->
    ?assertEqual([], faults("with m:f(_) monitor [_ ? a] ff,\nx: with m:f(_) none, with m:g() check ff.")).

invalid_utf8_is_an_error_with_its_place_test() ->
    ?assertMatch({error, {witness_spec, [#{code := not_utf8, line := 2, column := 7}]}},
                 compile(<<"with m:f(_) monitor\n [_ ? ", 255, "] ff.">>)),
    ?assertMatch({error, {witness_spec, [#{code := not_utf8, line := 1, column := 3}]}}, compile(<<"%é"/utf8, 16#C3>>)).

a_file_that_cannot_be_read_is_an_error_test() ->
    {error, {witness_spec, [#{code := unreadable, line := undefined, text := Text} = Missing]}} =
        witness_spec:compile_file("no/such.hml"),
    ?assertEqual(<<"cannot read the file: no such file or directory">>, Text),
    ?assertEqual(<<"no/such.hml: error: cannot read the file: no such file or directory">>, format(Missing)),
    {error, {witness_spec, [#{code := unreadable}]}} = witness_spec:compile_file("."),
    {error, {witness_spec, [#{code := unreadable}]}} = witness_spec:to_erlang("no/such.hml").

a_diagnostic_shows_the_line_with_a_caret_test() ->
    {error, {witness_spec, [Diagnostic]}} = compile(<<"% é\nwith m:f(_) check\n\t<_ ? Ü when Ü > 3> tt."/utf8>>),
    ?assertEqual(<<"test.hml:3:18: error: expected a formula, found `3`\n"
                   "  \t<_ ? Ü when Ü > 3> tt.\n"
                   "  \t                ^\n"
                   "  a guard with `>` inside `<...>` needs braces around the action: `<{P ? N when N > 1}>`"/utf8>>,
                 format(Diagnostic)).

control_characters_of_a_source_never_reach_the_terminal_test() ->
    {error, {witness_spec, [Diagnostic]}} = compile(<<"with m:f(_) monitor [_ ? 'a\e[31m", 16#202E/utf8, "'] gg."/utf8>>),
    ?assertEqual([], [C || C <- unicode:characters_to_list(format(Diagnostic)), C =:= $\e orelse C =:= 16#202E]).

long_lines_are_cut_around_the_column_test() ->
    Source = ["with m:f(_) monitor and(", [["[_ ? ", integer_to_list(N), "] ff, "] || N <- lists:seq(1, 1000)], "gg)."],
    {error, {witness_spec, [Diagnostic]}} = compile(iolist_to_binary(Source)),
    [_, Line, Caret] = string:split(format(Diagnostic), "\n", all),
    ?assert(string:length(Line) < 200),
    ?assertEqual("gg", string:slice(unicode:characters_to_list(Line), string:length(Caret) - 1, 2)).

no_more_than_fifty_errors_are_reported_test() ->
    {error, {witness_spec, Diagnostics}} = compile(iolist_to_binary(lists:duplicate(200, "with m:f(_) monitor X.\n"))),
    ?assertEqual(50, length(Diagnostics)).

faults(Source) ->
    case compile(unicode:characters_to_binary(Source)) of
        {ok, _, _} -> [];
        {error, {witness_spec, Diagnostics}} -> places(error, Diagnostics)
    end.

places(Wanted, Diagnostics) ->
    [{Line, Column, Code} || #{severity := Severity, line := Line, column := Column, code := Code} <- Diagnostics,
                             Severity =:= Wanted].

format(Diagnostic) -> iolist_to_binary(witness_spec:format_diagnostic(Diagnostic)).

compile(Source) ->
    Result = witness_spec:compile_string(<<"test.hml">>, Source),
    case Result of {ok, Map, _} -> witness_spec:unload(Map); _ -> ok end,
    Result.
