-module(witness_cli_check).
-moduledoc """
What `witness check` and `witness compile --try` start to check a log: the options for `witness:start/1`. Both start the same, so their
verdicts are the same.
""".

-export([start/3, properties/1, arguments/0]).

-doc "The arguments that say how a log is read.".
-spec arguments() -> [atom()].
arguments() -> [instrument, format, roots, skew, sort, clocks, skip_malformed, max_atoms, max_line].

-doc "The options that check this log, without those that say what is reported.".
-spec start(witness_options:log(), Properties :: map(), Options :: map()) -> {ok, map()} | {error, unicode:chardata()}.
start(Log, Properties, Options) ->
    maybe
        {ok, Roots} ?= roots(maps:get(roots, Options, [])),
        Given = maps:with((arguments() -- [roots]) ++ [follow, clock, save, from], Options),
        {ok, maps:merge(maps:merge(Properties, Given), Roots#{system => {log, Log}})}
    end.

roots([]) -> {ok, #{}};
roots(Names) -> roots(Names, []).

roots([Name | Names], Roots) ->
    case witness_log:proc(unicode:characters_to_binary(Name)) of
        {ok, Root} -> roots(Names, [Root | Roots]);
        error -> {error, [~"--root: the name of a process is expected, not '", witness_text:clean(Name), $']}
    end;
roots([], Roots) -> {ok, #{roots => lists:reverse(Roots)}}.

-doc "The options of a run that belong to its properties, but for their files and monitors.".
-spec properties(Options :: map()) -> {ok, map()} | {error, unicode:chardata()}.
properties(Options) ->
    maybe
        {ok, Signatures} ?= witness_cli_call:signatures(Options),
        Names = [include, instrument, max_slices, slice_idle, max_obligations, max_state, redact, syntax],
        {ok, maps:merge(maps:with(Names, Options), Signatures)}
    end.
