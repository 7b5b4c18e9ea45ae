Bblock2.bn1.weightJ uÿ‘;¡A-:¾ 
¼ÉÉ»^·:oì	<™ót¹€šº