-module(witness_search_calls).
-moduledoc """
The plan by which modules are woven for a search. Its calls are those of a replay (`m:witness_replay_calls`), so a process stops at
each point where a recording has an entry; `m:witness_search_runtime` performs them instead of reading them from a log.
""".

-export([plan/1]).

-doc "The plan by which the modules of folders are woven for a search.".
-spec plan([witness_weave_objects:folder()]) -> witness_weave:plan().
plan(Folders) -> (witness_replay_calls:plan(Folders))#{runtime => witness_search_runtime}.
