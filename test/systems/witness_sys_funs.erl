-module(witness_sys_funs).
-moduledoc """
Processes that run funs: an anonymous one, a local one, an exported one, one with arguments, through `spawn` and
`proc_lib`. Each sends its root what it was made as.
""".
-export([main/0, exported/0, with_arguments/2]).

-spec main() -> ok.
main() ->
    true = register(?MODULE, self()),
    anonymous(self()),
    anonymous_by_proc_lib(self()),
    _ = spawn_link(fun ?MODULE:exported/0),
    _ = spawn(fun local/0),
    _ = spawn(?MODULE, with_arguments, [1, self()]),
    _ = spawn(erlang, apply, [fun ?MODULE:with_arguments/2, [2, self()]]),
    _ = [receive {made, Kind} -> ok end || Kind <- [anonymous, proc_lib, exported, local, 1, 2]],
    ok.

anonymous(Root) -> spawn(fun() -> Root ! {made, anonymous} end).

anonymous_by_proc_lib(Root) -> proc_lib:spawn(fun() -> Root ! {made, proc_lib} end).

-spec exported() -> {made, exported}.
exported() -> ?MODULE ! {made, exported}.

local() -> ?MODULE ! {made, local}.

-spec with_arguments(integer(), pid()) -> {made, integer()}.
with_arguments(N, Root) -> Root ! {made, N}.
