-module(witness_weave_unchanged).
-moduledoc """
Modules that weaving does not change.

A third of the modules of `kernel` and `stdlib` sends nothing, receives nothing, and calls no function that has a row. Their object
code is used as it is. Only the attribute `witness_weave` is added, which says that the module was checked. That is as
good as compiling it again, since the compiler would make the same code, and it takes no time.

The digest of a module (`code:module_md5/1`) covers neither attributes nor debug information, so it stays that of the
original.
""".

-export([forms/2, mark/2]).

-doc "Whether woven forms are the original ones, except for the attribute.".
-spec forms([erl_parse:abstract_form()], [erl_parse:abstract_form()]) -> boolean().
forms(Forms, Woven) -> Forms =:= [Form || Form <- Woven, not is_mark(Form)].

is_mark({attribute, _, witness_weave, _}) -> true;
is_mark(_) -> false.

-doc "Object code with the attribute `witness_weave`.".
-spec mark(binary(), Runtime :: module()) -> binary().
mark(Original, Runtime) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Original),
    {ok, Marked} = beam_lib:build_module([mark_chunk(Chunk, Runtime) || Chunk <- Chunks]),
    Marked.

mark_chunk({"Attr", Bytes}, Runtime) ->
    %% The chunk was read from the code path, and contains the atoms that loading the module would make.
    {"Attr", term_to_binary([{witness_weave, [Runtime]} | binary_to_term(Bytes)])};
mark_chunk(Chunk, _) ->
    Chunk.
