Bblock2.bn2.biasJ ÜEq=%K®½{×¢=ŞßÜ=_½ïY=[p»<d
_<