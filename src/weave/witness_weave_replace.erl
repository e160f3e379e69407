-module(witness_weave_replace).
-moduledoc """
Puts an older version of a module in the place of the current one, without a moment at which its funs cannot be called.

The VM holds two versions of a module. To load the older one once more it must be purged first, and until it is loaded
its funs are `badfun`, wherever they are: the VM looks for processes that run code, not for funs. A process that calls
one while the module is being purged is suspended, and resumed when it has been: exactly then.

So no process of normal priority runs between the two. The object code is prepared before; all schedulers but one wait; on that
one, this process and the one that purges go first; and loading waits for nobody, because the VM replaces a module in which a
function is traced at once, and one is, in a session that traces no process.
""".

-export([with/2]).

-doc """
Loads object code, unless a process runs the version of the module before the current one.

There is one scheduler until every process has been asked what code it runs, which takes a few microseconds for each.
""".
-spec with(module(), Object :: binary()) -> boolean().
with(Module, Object) ->
    case erlang:prepare_loading(Module, Object) of
        {error, _} -> false;
        Prepared ->
            at_once(Module, fun() ->
                %% The code server, through which `code:soft_purge/1` goes, does not go first.
                erts_code_purger:soft_purge(Module) andalso erlang:finish_loading([Prepared]) =:= ok
            end)
    end.

at_once(Module, Do) ->
    Session = trace:session_create(?MODULE, self(), []),
    Priority = process_flag(priority, max),
    try
        _ = trace:function(Session, {Module, module_info, 0}, true, [local]),
        _ = erlang:system_flag(multi_scheduling, block_normal),
        Do()
    after
        _ = erlang:system_flag(multi_scheduling, unblock_normal),
        process_flag(priority, Priority),
        trace:session_destroy(Session)
    end.
