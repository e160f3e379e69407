-module(witness_inline_outside).
-moduledoc """
Finds monitored processes that run code which is not woven and could send or receive for them.

Modules that are not woven are watched: their functions have breakpoints in a trace session with the coordinator as its tracer. A
process is traced for calls (`observe/1`) while it has monitors. So the VM reports the first call that a monitored process
makes into such a module: by name, by a variable, by a fun, or from a module of OTP. If the module acts
(`m:witness_inline_reach`), the process is suspect from then on; if it does not, its breakpoints are removed.

Before the coordinator forwards results of monitors, `settle/1` waits until all earlier calls have been reported. So no
verdict passes that comes after such a call. If an acting module is loaded during the run, it has no breakpoints: from then on every
process is suspect, since any of them may have called it.

If there is no module to watch, there is no session, and monitored processes pay nothing.

The state belongs to the coordinator; when the coordinator dies, the VM ends its trace session.
""".

-export([open/3, session/1, observe/1, leave/0, pause/0, resume/0, handle_call/2, settle/1, suspect/2, close/1]).
-export_type([outside/0, session/0]).

-type session() :: none | trace:session().

%% watched: the digests of modules with breakpoints; acting: whether a module acts, as far as that is known; loaded: the modules
%% that were loaded at the last check; suspects: the module that each process has called; all: one that every process may have
%% called.
-record(outside, {session = none :: session(),
                  closed = false :: boolean(),
                  watched = #{} :: #{module() => binary()},
                  acting = #{} :: #{module() => boolean()},
                  not_foreign :: witness_inline_reach:known(),
                  monitors :: [module()],
                  loaded = [] :: [module()],
                  suspects = #{} :: #{pid() => module()},
                  all = none :: none | module()}).

-opaque outside() :: #outside{}.

%% In the dictionary of a process that is observed.
-define(KEY, '$witness_outside').

-doc """
Watches, for the calling process, all modules that are loaded and not woven, except those that are known not to act. Modules
that woven modules name are loaded before, so that they are watched from their first call on, except those that would run code
when loaded.
""".
-spec open([module()], Known :: #{module() => witness_inline_reach:facts()}, Monitors :: [module()]) -> outside().
open(Woven, Known, Monitors) ->
    NotForeign = witness_inline_reach:not_foreign(),
    Path = maps:without(Monitors, witness_inline_reach:on_path(NotForeign)),
    Reached = maps:merge(witness_inline_reach:reachable(Woven, Path, Known), Known),
    _ = [code:ensure_loaded(M) || M := #{acts := true, on_load := false} <- Reached, not erlang:module_loaded(M)],
    Loaded = erlang:loaded(),
    O = #outside{not_foreign = NotForeign, monitors = Monitors, loaded = Loaded,
                 acting = #{M => Acts || M := #{acts := Acts} <- Reached}},
    case watchable(Loaded, O) of
        [] -> O;
        Modules ->
            Session = trace:session_create(?MODULE, self(), []),
            lists:foreach(fun(M) -> trace:function(Session, {M, '_', '_'}, true, [local]) end, Modules),
            O#outside{session = Session, watched = #{M => digest(M) || M <- Modules}}
    end.

watchable(Modules, #outside{not_foreign = NotForeign, monitors = Monitors, acting = Acting}) ->
    Files = #{M => File || {M, File} <- code:all_loaded()},
    [M || M <- Modules, File <- [maps:get(M, Files, preloaded)], not lists:member(M, Monitors),
          maps:get(M, Acting, true), witness_inline_reach:is_foreign(M, File, NotForeign),
          witness_weave:woven(M) =/= {ok, witness_inline_process}].

-doc "The trace session, for processes that start.".
-spec session(outside()) -> session().
session(#outside{session = Session}) -> Session.

-doc "The calling process has monitors from now on.".
-spec observe(session()) -> ok.
observe(none) -> ok;
observe(Session) ->
    _ = put(?KEY, Session),
    set_call_tracing(Session, self(), true).

-doc "The calling process has no monitors any more: its calls are not traced from now on.".
-spec leave() -> ok.
leave() ->
    case erase(?KEY) of
        undefined -> ok;
        Session -> set_call_tracing(Session, self(), false)
    end.

-doc "Pauses tracing while a monitor of the calling process runs, which may call modules that are not woven.".
-spec pause() -> ok.
pause() -> set_tracing(false).

-doc "Traces the process again.".
-spec resume() -> ok.
resume() -> set_tracing(true).

set_tracing(How) ->
    case get(?KEY) of
        undefined -> ok;
        Session -> set_call_tracing(Session, self(), How)
    end.

%% The session or the process may have ended.
set_call_tracing(Session, P, How) ->
    _ = try trace:process(Session, P, How, [call, arity])
        catch error:badarg -> 0
        end,
    ok.

-doc "An observed process has made this call, according to its trace message.".
-spec handle_call({trace, pid(), call, mfa()}, outside()) -> outside().
handle_call({trace, P, call, {M, _, _}}, O0 = #outside{session = Session, suspects = Suspects}) ->
    case is_acting(M, O0) of
        {true, O} when is_map_key(P, Suspects) -> O;
        {true, O} ->
            ok = set_call_tracing(Session, P, false),
            O#outside{suspects = Suspects#{P => M}};
        {false, O} ->
            _ = Session =:= none orelse trace:function(Session, {M, '_', '_'}, false, [local]),
            O#outside{watched = maps:remove(M, O#outside.watched)}
    end.

is_acting(M, O = #outside{acting = Acting}) ->
    case Acting of
        #{M := Acts} -> {Acts, O};
        #{} ->
            #{acts := Acts} = witness_inline_reach:facts(M),
            {Acts, O#outside{acting = Acting#{M => Acts}}}
    end.

-doc "Handles all calls that were made before.".
-spec settle(outside()) -> outside().
settle(O = #outside{closed = true}) -> O;
settle(O) -> compare_modules(handle_calls(O)).

handle_calls(O = #outside{session = none}) -> O;
handle_calls(O = #outside{session = Session}) -> handle_calls(trace:delivered(Session, all), O).

handle_calls(Ref, O) ->
    receive
        {trace, _, call, _} = Call -> handle_calls(Ref, handle_call(Call, O));
        {trace_delivered, all, Ref} -> O
    end.

%% A module that is loaded later has no breakpoints.
compare_modules(O = #outside{loaded = Loaded, watched = Watched}) ->
    Replaced = [M || M := Md5 <- Watched, digest(M) =/= Md5],
    case erlang:loaded() of
        Loaded when Replaced =:= [] -> O;
        Now ->
            Known = maps:from_keys(Loaded, []),
            New = watchable([M || M <- Now, not is_map_key(M, Known)] ++ Replaced, O),
            lists:foldl(fun(M, A) ->
                            case is_acting(M, A) of
                                {true, A1 = #outside{all = none}} -> A1#outside{all = M};
                                {_, A1} -> A1
                            end
                        end, O#outside{loaded = Now, watched = maps:without(Replaced, Watched)}, New)
    end.

digest(M) ->
    try M:module_info(md5)
    catch error:undef -> <<>>
    end.

-doc "The module that a process has called, or may have called, and in which it was not observed.".
-spec suspect(pid(), outside()) -> none | module().
suspect(P, #outside{suspects = Suspects, all = All}) -> maps:get(P, Suspects, All).

-doc "Stops watching. The suspects stay.".
-spec close(outside()) -> outside().
close(O = #outside{session = Session}) ->
    _ = Session =:= none orelse trace:session_destroy(Session),
    O#outside{session = none, closed = true}.
