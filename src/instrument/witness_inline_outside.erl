-module(witness_inline_outside).
-moduledoc """
Finds monitored processes that run code which is not woven and could send or receive for them.

Modules that are not woven are watched: their functions have breakpoints in a trace session whose tracer is the host, and a
process is traced for calls (`observe/1`) while it has monitors. So the VM tells of the first call that a monitored process
makes into such a module, however it gets there: by its name, by a variable, by a fun, or from a module of OTP. If the module
acts (`m:witness_inline_reach`), the process is suspect from then on; if it does not, its breakpoints are removed.

Before anything that monitors have found is handed on, `settle/1` waits until all calls of before have been told. So no
verdict that comes after such a call passes. What nobody watches yet is loaded during the run: from then on every process is
suspect, if the module acts, since nobody knows who has called it.

There is no session, and monitored processes pay nothing, where there is no module to be watched.

The state belongs to the host; when that dies, the VM ends its trace session.
""".

-export([open/3, session/1, observe/1, leave/0, pause/0, resume/0, called/2, settle/1, suspect/2, close/1]).
-export_type([outside/0, session/0]).

-type session() :: none | trace:session().

%% watched: the digests of modules with breakpoints; acting: what is known of modules; loaded: all that was loaded at the last
%% look; suspects: the module that each process has called; all: one that every process may have called.
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
Watches all that is loaded and not woven, for the calling process, but for what is known not to act. What woven modules name is
loaded before, so that it is watched from its first call on; but not what would run code when it is loaded.
""".
-spec open([module()], Known :: #{module() => witness_inline_reach:facts()}, Monitors :: [module()]) -> outside().
open(Woven, Known, Monitors) ->
    NotForeign = witness_inline_reach:known(),
    Path = maps:without(Monitors, witness_inline_reach:on_path(NotForeign)),
    Reached = maps:merge(witness_inline_reach:reached(Woven, Path, Known), Known),
    _ = [code:ensure_loaded(M) || M := #{acts := true, on_load := false} <- Reached, not erlang:module_loaded(M)],
    Loaded = erlang:loaded(),
    O = #outside{not_foreign = NotForeign, monitors = Monitors, loaded = Loaded, acting = #{M => Acts || M := #{acts := Acts} <- Reached}},
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

-doc "For processes that begin.".
-spec session(outside()) -> session().
session(#outside{session = Session}) -> Session.

-doc "The calling process has monitors from now on.".
-spec observe(session()) -> ok.
observe(none) -> ok;
observe(Session) ->
    _ = put(?KEY, Session),
    traced(Session, self(), true).

-doc "The calling process has no monitors any more: what it does is its own affair.".
-spec leave() -> ok.
leave() ->
    case erase(?KEY) of
        undefined -> ok;
        Session -> traced(Session, self(), false)
    end.

-doc "What follows is done by a monitor of the calling process, which may call what is not woven.".
-spec pause() -> ok.
pause() -> again(false).

-doc "The process itself goes on.".
-spec resume() -> ok.
resume() -> again(true).

again(How) ->
    case get(?KEY) of
        undefined -> ok;
        Session -> traced(Session, self(), How)
    end.

%% The run may be over, or the process.
traced(Session, P, How) ->
    _ = try trace:process(Session, P, How, [call, arity])
        catch error:badarg -> 0
        end,
    ok.

-doc "A process that is observed has called this, as its trace message tells.".
-spec called({trace, pid(), call, mfa()}, outside()) -> outside().
called({trace, P, call, {M, _, _}}, O0 = #outside{session = Session, suspects = Suspects}) ->
    case acts(M, O0) of
        {true, O} when is_map_key(P, Suspects) -> O;
        {true, O} ->
            ok = traced(Session, P, false),
            O#outside{suspects = Suspects#{P => M}};
        {false, O} ->
            _ = Session =:= none orelse trace:function(Session, {M, '_', '_'}, false, [local]),
            O#outside{watched = maps:remove(M, O#outside.watched)}
    end.

acts(M, O = #outside{acting = Acting}) ->
    case Acting of
        #{M := Acts} -> {Acts, O};
        #{} ->
            #{acts := Acts} = witness_inline_reach:facts(M),
            {Acts, O#outside{acting = Acting#{M => Acts}}}
    end.

-doc "All calls that were made before are known now.".
-spec settle(outside()) -> outside().
settle(O = #outside{closed = true}) -> O;
settle(O) -> compared(told(O)).

told(O = #outside{session = none}) -> O;
told(O = #outside{session = Session}) -> told(trace:delivered(Session, all), O).

told(Ref, O) ->
    receive
        {trace, _, call, _} = Call -> told(Ref, called(Call, O));
        {trace_delivered, all, Ref} -> O
    end.

%% What is loaded later has no breakpoints.
compared(O = #outside{loaded = Loaded, watched = Watched}) ->
    Replaced = [M || M := Md5 <- Watched, digest(M) =/= Md5],
    case erlang:loaded() of
        Loaded when Replaced =:= [] -> O;
        Now ->
            Known = maps:from_keys(Loaded, []),
            New = watchable([M || M <- Now, not is_map_key(M, Known)] ++ Replaced, O),
            lists:foldl(fun(M, A) ->
                            case acts(M, A) of
                                {true, A1 = #outside{all = none}} -> A1#outside{all = M};
                                {_, A1} -> A1
                            end
                        end, O#outside{loaded = Now, watched = maps:without(Replaced, Watched)}, New)
    end.

digest(M) ->
    try M:module_info(md5)
    catch error:undef -> <<>>
    end.

-doc "The module that a process has called, or may have, and in which it was not seen.".
-spec suspect(pid(), outside()) -> none | module().
suspect(P, #outside{suspects = Suspects, all = All}) -> maps:get(P, Suspects, All).

-doc "Nothing more is watched. What is known of processes stays.".
-spec close(outside()) -> outside().
close(O = #outside{session = Session}) ->
    _ = Session =:= none orelse trace:session_destroy(Session),
    O#outside{session = none, closed = true}.
