-module(witness_cli_record_size).
-moduledoc """
Says how large a recording is while it grows, so that a service that is recorded fills no disk unnoticed: a line on standard error at
100 MB, and each time that it has doubled since.
""".

-export([watch/1, watch/2, stop/1]).

-export_type([watch/0, options/0]).

-opaque watch() :: pid().

-doc "The number of bytes to say first, the pause between two looks, and the function that prints a line.".
-type options() :: #{first => pos_integer(), pause_ms => pos_integer(), note => fun((unicode:chardata()) -> term())}.

-define(MEGABYTE, 1_000_000).

-doc "Watches the folder of a recording until `stop/1`, or until the caller ends.".
-spec watch(file:filename()) -> watch().
watch(Dir) -> watch(Dir, #{}).

-spec watch(file:filename(), options()) -> watch().
watch(Dir, Options) ->
    Owner = self(),
    All = maps:merge(#{first => 100 * ?MEGABYTE, pause_ms => 1000, note => fun witness_cli_io:note/1}, Options),
    spawn(fun() ->
        Ref = monitor(process, Owner),
        look(Dir, maps:get(first, All), Ref, All)
    end).

-doc "No line is printed from here on.".
-spec stop(watch()) -> ok.
stop(Watch) ->
    Ref = monitor(process, Watch),
    exit(Watch, kill),
    receive {'DOWN', Ref, process, Watch, _} -> ok end.

look(Dir, Next, Owner, #{pause_ms := Pause, note := Note} = Options) ->
    receive
        {'DOWN', Owner, process, _, _} -> ok
    after Pause ->
        Size = size_of(Dir),
        _ = Size >= Next andalso
            Note([~"the recording ", witness_text:clean(Dir), ~" has ", integer_to_binary(Size div ?MEGABYTE),
                  ~" MB so far (--last keeps the last part alone)\n"]),
        look(Dir, next(Size, Next), Owner, Options)
    end.

next(Size, Next) when Size < Next -> Next;
next(Size, Next) -> next(Size, 2 * Next).

%% Its files are in this folder, but for parts that were kept. A file may be gone meanwhile.
size_of(Dir) ->
    case file:list_dir_all(Dir) of
        {ok, Names} -> lists:sum([filelib:file_size(filename:join(Dir, Name)) || Name <- Names]);
        {error, _} -> 0
    end.
