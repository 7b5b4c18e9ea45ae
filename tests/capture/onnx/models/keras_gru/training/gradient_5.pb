BXfunctional_3_1/bidirectional_1/backward_gru_1/gru_cell_1/split/ReadVariableOp/resource:0J`ˆYm½œÎ£½d½&À6=ĞŒ=”Ú„»Íq;Š/C:ä[„>õî¹¼ÛÎw=i=ˆYm½œÎ£½d½&À6=ĞŒ=”Ú„»Íq;Š/C:Ú†ê=Äñb¼ùA;=
6;