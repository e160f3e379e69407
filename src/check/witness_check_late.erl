-module(witness_check_late).
-moduledoc """
The monitor of the check `late`: which calls its process has given up, and which answers to calls it has sent.

An answer is known by the tag of its call. OTP and Elixir give each call a tag of its own, an alias, which the process that has called
does not read any more when it has given up. Whether an answer came to such a process follows from the reports of both
(`m:witness_run_late`).
""".
-behaviour(witness_monitor).

-export([init/3, attached/3, handle_event/2, handle_end/2, alphabet/1]).

-export_type([report/0, call/0]).

-doc """
`given_up`: the calls that have no answer although the process has gone on without one; `waits`: those that have none when observation
stops; `answers`: when it has sent which answers; `more`: whether it has sent others before them.
""".
-type report() :: #{given_up := #{reference() => call()}, waits := boolean(),
                    answers := #{reference() => witness_event:ts()}, more := boolean()}.

-doc "The called process and the time of the call.".
-type call() :: {witness_event:destination(), witness_event:ts()}.

-record(late, {calls = #{} :: #{reference() => call()},
               answers = #{} :: #{reference() => witness_event:ts()},
               more = false :: boolean()}).

%% Tags of answers are lists.
-define(ANSWER, {['_', {'$1', '_'}], [{is_list, '$1'}], [true]}).

%% A server may send very many. When there are so many, they are forgotten.
-define(MAX_ANSWERS, 1000).

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), undefined) -> {ok, #late{}}.
init(_, _, _) -> {ok, #late{}}.

-doc false.
-spec attached(mfa(), witness_event:proc(), undefined) -> {ok, #late{}}.
attached(_, _, _) -> {ok, #late{}}.

-doc false.
-spec alphabet(undefined) -> [witness_event:kind() | {witness_event:kind(), ets:match_spec()}].
alphabet(_) ->
    [init, exit,
     {send, [{['_', {'$gen_call', '_', '_'}], [], [true]}, ?ANSWER]},
     {recv, [{['_', {'_', '_'}], [], [true]}, {['_', {'_', '_', process, '_', '_'}], [], [true]}]}].

-doc false.
-spec handle_event(witness_event:event(), #late{}) -> {ok, #late{}} | {verdict, yes, undefined | report()}.
handle_event({send, P, To, {'$gen_call', {P, Tag}, _}, Time}, L = #late{calls = Calls}) ->
    case reference(Tag) of
        none -> {ok, L};
        Call -> {ok, L#late{calls = Calls#{Call => {To, Time}}}}
    end;
handle_event({send, _, _, {Tag, _}, Time}, L) ->
    case reference(Tag) of
        none -> {ok, L};
        Call -> {ok, answer(Call, Time, L)}
    end;
handle_event({recv, _, _, {Tag, _}, _}, L = #late{calls = Calls}) ->
    {ok, L#late{calls = maps:remove(reference(Tag), Calls)}};
handle_event({recv, _, _, {_, Call, process, _, _}, _}, L = #late{calls = Calls}) -> {ok, L#late{calls = maps:remove(Call, Calls)}};
handle_event({exit, _, Reason, _}, L) -> {verdict, yes, report(goes_on_without(Reason), L)};
handle_event(_, L) -> {ok, L}.

answer(Call, Time, L = #late{answers = Answers}) when map_size(Answers) < ?MAX_ANSWERS -> L#late{answers = Answers#{Call => Time}};
answer(Call, Time, L) -> L#late{answers = #{Call => Time}, more = true}.

%% A process that is shut down, or that ends by another error, may end in the midst of a call.
goes_on_without(normal) -> true;
goes_on_without({timeout, {M, F, _}}) -> is_atom(M) andalso is_atom(F);
goes_on_without(_) -> false.

report(_, #late{calls = Calls, answers = Answers}) when map_size(Calls) =:= 0, map_size(Answers) =:= 0 -> undefined;
report(HasGivenUp, #late{calls = Calls, answers = Answers, more = More}) ->
    #{given_up => case HasGivenUp of true -> Calls; _ -> #{} end, waits => HasGivenUp =:= unknown andalso map_size(Calls) > 0,
      answers => Answers, more => More}.

-doc false.
-spec handle_end(complete | stopped, #late{}) -> {yes, undefined | report()}.
handle_end(complete, L) -> {yes, report(true, L)};
handle_end(stopped, L) -> {yes, report(unknown, L)}.

%% As in `m:witness_check_calls'. What a monitor calls must be in its own module, so that it is seen to be bounded
%% (`m:witness_monitor_safety').
reference([alias | Ref]) when is_reference(Ref) -> Ref;
reference([[alias | _] | Monitor]) when is_reference(Monitor) -> Monitor;
reference(Ref) when is_reference(Ref) -> Ref;
reference(_) -> none.
