B
mlp.2.biasJ@9¤»™QM½i5G½P$Ý½0¾U˜½Q=ÊH0>È|/½?TR=lFå;˜»|<wq¼:ÎŠ<š•½LûA½