Battention.v.biasJ@âb<îÎ¯=oý
½¶½~ <yzH½R¾$<PÝ]¼%£=Šga¼‡Ö\º:=ìh)=Oq¥<ŠšL½dØŽ½