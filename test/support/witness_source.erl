-module(witness_source).
-moduledoc "Suites that run over both sources of events have a group of test cases for each.".

-export([init/2]).

-doc "The configuration of a group, with its `source`; skipped where there is no native one.".
-spec init(native | evm, Config) -> Config | {skip, string()} when Config :: [{atom(), term()}].
init(native, Config) ->
    case witness_trace_native:available() of
        ok -> [{source, native} | Config];
        {error, Reason} -> {skip, unicode:characters_to_list(Reason)}
    end;
init(evm, Config) -> [{source, evm} | Config].
