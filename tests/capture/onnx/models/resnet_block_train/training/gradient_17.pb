Bblock2.projection.1.biasJ ÜEq=%K®½{×¢=ÞßÜ=_½ïY=[p»<d
_<